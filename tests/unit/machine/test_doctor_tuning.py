"""`doctor --tune` and `--restore`: exactly what was comes back, whenever either is killed."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.errors import HostError
from corebound.machine.doctor.host_settings import (
    STATE,
    Disk,
    decode,
    encode,
    restore,
    saved_settings,
    tune,
)
from corebound.machine.doctor.result import SettingChange
from corebound.machine.sysfs import selected
from support.examples import examples
from support.machine_trees import write_files
from support.texts import in_order

THP = "sys/kernel/mm/transparent_hugepage/enabled"
SWAPPINESS = "proc/sys/vm/swappiness"
GOVERNORS = tuple(f"sys/devices/system/cpu/cpufreq/policy{n}/scaling_governor" for n in range(2))
MACHINE = {
    THP: b"[always] madvise never\n",
    SWAPPINESS: b"60\n",
    GOVERNORS[0]: b"powersave\n",
    GOVERNORS[1]: b"schedutil\n",
}
WANTED = {THP: "madvise", SWAPPINESS: "1", GOVERNORS[0]: "performance", GOVERNORS[1]: "performance"}


class KilledError(BaseException):
    """As SIGKILL: nothing of ours catches it."""


class Kernel(Disk):
    """A disk that shows settings as the kernel does, notes each step, and kills before one."""

    def __init__(
        self, *, kill_at: int | None = None, refuses: frozenset[str] = frozenset()
    ) -> None:
        self.steps: list[tuple[str, str]] = []
        self._kill_at = kill_at
        self._refuses = refuses

    def _step(self, what: str, path: Path) -> None:
        if len(self.steps) == self._kill_at:
            raise KilledError
        self.steps.append((what, path.name))

    def write(self, path: Path, data: bytes) -> None:
        # A process may be killed with half a file written.
        self._step("begin", path)
        path.write_bytes(data[: len(data) // 2])
        self._step("write", path)
        super().write(path, data)

    def rename(self, source: Path, target: Path) -> None:
        self._step("rename", target)
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        self._step("remove", path)
        super().remove(path)

    def sync(self, folder: Path) -> None:
        self._step("sync", folder)
        super().sync(folder)

    def set(self, path: Path, value: str) -> None:
        self._step("set", path)
        if path.name in self._refuses:
            raise OSError(22, "Invalid argument")
        show(path, value)


def show(path: Path, value: str) -> None:
    """Set a file as the kernel would: of several words it brackets the one chosen."""
    words = path.read_text().replace("[", "").replace("]", "").split()
    if len(words) > 1:
        value = " ".join(f"[{word}]" if word == value else word for word in words)
    path.write_text(f"{value}\n")


def wanted(root: Path) -> tuple[SettingChange, ...]:
    """What `--tune` would change now: whatever is not as it ought to be."""
    return tuple(
        SettingChange(path=path, prior=now, value=value)
        for path, value in WANTED.items()
        if (now := selected((root / path).read_text())) != value
    )


def contents(root: Path) -> dict[str, bytes]:
    return {path: (root / path).read_bytes() for path in MACHINE}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_files(MACHINE, tmp_path)


@contextmanager
def a_root() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield write_files(MACHINE, Path(folder))


def test_a_previous_value_is_stored_before_the_setting_changes(root: Path) -> None:
    kernel = Kernel()

    tune(wanted(root)[:1], root, kernel)

    assert kernel.steps == [
        ("begin", "tuned.part"),
        ("write", "tuned.part"),
        ("rename", "tuned.json"),
        ("sync", "corebound"),
        ("set", "enabled"),
    ]


# Each event is tune or restore with the step before which it is killed (None: it ends),
# or somebody else setting something.
EVENTS = st.one_of(
    st.tuples(st.just("tune"), st.one_of(st.none(), st.integers(0, 25))),
    st.tuples(st.just("restore"), st.one_of(st.none(), st.integers(0, 12))),
)
OTHERS = st.tuples(st.just("other"), st.sampled_from(sorted(MACHINE)))


@examples(40)
@given(events=st.lists(EVENTS, max_size=6))
def test_after_a_kill_at_any_point_the_next_restore_is_complete(
    events: list[tuple[str, int | None]],
) -> None:
    with a_root() as root:
        for what, kill_at in events:
            with suppress(KilledError):
                if what == "tune":
                    tune(wanted(root), root, Kernel(kill_at=kill_at))
                else:
                    restore(root, Kernel(kill_at=kill_at))

        outcomes = restore(root, Kernel())

        assert contents(root) == MACHINE
        assert all(one.fault is None for one in outcomes)
        assert not (root / STATE).exists()


@examples(40)
@given(events=st.lists(st.one_of(EVENTS, OTHERS), max_size=8))
def test_the_state_file_always_holds_the_original_values(
    events: list[tuple[str, int | str | None]],
) -> None:
    """With others changing settings too: what is restored is what was before the first change."""
    with a_root() as root:
        for what, how in events:
            before = {one.path: one.prior for one in saved_settings(root)}
            if what == "other":
                show(root / str(how), "madvise" if how == THP else "7")
                continue
            kernel = Kernel(kill_at=how if isinstance(how, int) else None)
            with suppress(KilledError):
                if what == "tune":
                    tune(wanted(root), root, kernel)
                else:
                    restore(root, kernel)
            after = {one.path: one.prior for one in saved_settings(root)}
            assert not after or before.items() <= after.items()

        first = {one.path: one.prior for one in saved_settings(root)}
        restore(root, Kernel())

        assert {path: selected((root / path).read_text()) for path in first} == first
        assert not (root / STATE).exists()


def test_a_setting_changed_by_others_is_restored_and_reported(root: Path) -> None:
    tune(wanted(root), root, Kernel())
    show(root / SWAPPINESS, "30")

    outcomes = {one.path: one for one in restore(root, Kernel())}

    assert outcomes[SWAPPINESS].meanwhile == "30"
    assert outcomes[THP].meanwhile is None
    assert contents(root) == MACHINE


def test_a_setting_rejected_by_the_kernel_leaves_no_state(root: Path) -> None:
    outcomes = tune(
        wanted(root), root, Kernel(refuses=frozenset({"enabled", "swappiness", "scaling_governor"}))
    )

    assert outcomes
    for one in outcomes:
        assert in_order(one.fault, f"set to {WANTED[one.path]}", "Invalid argument")
    assert contents(root) == MACHINE
    assert not (root / STATE).exists()


def test_the_state_file_stays_until_everything_is_restored(root: Path) -> None:
    tune(wanted(root), root, Kernel())

    outcomes = restore(root, Kernel(refuses=frozenset({"swappiness"})))

    assert [one.path for one in outcomes if one.fault] == [SWAPPINESS]
    assert (root / STATE).exists()
    restore(root, Kernel())
    assert contents(root) == MACHINE
    assert not (root / STATE).exists()


def test_a_missing_setting_cannot_be_restored(root: Path) -> None:
    tune(wanted(root), root, Kernel())
    (root / GOVERNORS[1]).unlink()

    outcomes = {one.path: one.fault for one in restore(root, Kernel())}

    assert in_order(outcomes[GOVERNORS[1]], "cannot be read")
    assert (root / STATE).exists()


def test_the_disk_writes_existing_settings_only(tmp_path: Path) -> None:
    file = tmp_path / "swappiness"
    file.write_text("60\n")

    Disk().set(file, "1")

    assert file.read_text() == "1\n"
    with pytest.raises(FileNotFoundError):
        Disk().set(tmp_path / "other", "1")
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"schema": 2, "settings": []}',
        '{"schema": 1, "settings": {}}',
        '{"schema": 1, "settings": [{"path": "proc/sys/vm/x"}]}',
        '{"schema": 1, "settings": [{"path": "etc/passwd", "prior": "x", "value": "y"}]}',
        '{"schema": 1, "settings": [{"path": "sys/../etc/passwd", "prior": "x", "value": "y"}]}',
        '{"schema": 1, "settings": [{"path": "/proc/sys/vm/x", "prior": "x", "value": "y"}]}',
    ],
)
def test_a_damaged_state_file_is_reported_and_nothing_is_written(root: Path, text: str) -> None:
    (root / STATE).parent.mkdir(parents=True)
    (root / STATE).write_text(text)

    with pytest.raises(HostError, match=r"tuned\.json"):
        restore(root, Kernel())
    with pytest.raises(HostError, match=r"tuned\.json"):
        tune(wanted(root), root, Kernel())
    assert contents(root) == MACHINE


KEPT = st.builds(
    SettingChange,
    path=st.lists(st.sampled_from(["vm", "a.b", "..c", "policy0"]), min_size=1).map(
        lambda parts: "/".join(("proc/sys", *parts))
    ),
    prior=st.text(),
    value=st.text(),
)


@given(kept=st.lists(KEPT))
def test_a_state_file_reads_back_unchanged(kept: list[SettingChange]) -> None:
    # Lone surrogates cannot come out of a file that was decoded as UTF-8.
    assert decode(encode(kept)) == tuple(kept)
