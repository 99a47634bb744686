"""Record files are written completely or not at all, and never rewritten."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.errors import HostError, InputError
from corebound.records import codec, jsonl
from corebound.records.launch_record import Status
from support.build import a_launch, a_run, write_records

# The fixture `synced`.
Synced = Callable[[Path], list[bytes | list[str]]]


def a_file(folder: Path, *, launches: int = 3) -> Path:
    file = folder / "host" / "run.jsonl"
    appender = jsonl.Appender(file)
    appender.append(a_run())
    for block in range(launches):
        appender.append(a_launch(block=block))
    appender.close()
    return file


def test_a_run_that_could_not_be_read_back_makes_no_file(tmp_path: Path) -> None:
    file = tmp_path / "host" / "r1.jsonl"

    with pytest.raises(codec.UnreadableError):
        jsonl.begin(replace(a_run(), seed=1 << 61), file)

    assert not file.exists()


def test_a_budget_below_0_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    stored = jsonl.read(write_records(tmp_path, replace(a_run(), budget_s=-27.85), a_launch()))

    assert stored.run.budget_s == -27.85
    assert not stored.faults


@given(st.binary())
def test_a_line_is_a_record_or_unreadable(line: bytes) -> None:
    with pytest.raises(codec.UnreadableError):
        codec.decode_launch(line)
    with pytest.raises(codec.UnreadableError):
        codec.decode_run(line)


@given(cut=st.integers(min_value=1, max_value=10_000))
def test_a_truncated_file_loses_only_its_last_launch(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = a_file(tmp_path_factory.mktemp("torn"))
    whole = file.read_bytes()
    kept = whole[: max(len(whole.split(b"\n")[0]) + 1, len(whole) - cut)]
    file.write_bytes(kept)

    appender = jsonl.Appender(file)
    appender.append(a_launch(block=9))
    appender.close()

    stored = jsonl.read(file)
    assert stored.faults == ()
    blocks = [launch.block for launch in stored.launches]
    assert blocks == [*range(kept.count(b"\n") - 1), 9]


@pytest.mark.parametrize("status", ["ok", "failed", "timed-out", "invalid", "skipped", None])
def test_a_run_appears_with_its_first_launch(tmp_path: Path, status: Status | None) -> None:
    file = tmp_path / "host" / "run.jsonl"
    with contextlib.closing(jsonl.begin(a_run(), file)) as appender:
        assert [*jsonl.files(tmp_path)] == []
        if status is not None:
            appender.append(a_launch(status=status))

        is_launched = status not in {"skipped", None}
        assert [*jsonl.files(tmp_path)] == [file] * is_launched

    assert [*file.parent.iterdir()] == [file] * is_launched


def test_a_run_that_launches_nothing_may_appear_with_what_it_skipped(tmp_path: Path) -> None:
    file = tmp_path / "host" / "run.jsonl"
    with contextlib.closing(jsonl.begin(a_run(), file)) as appender:
        appender.append(a_launch(status="skipped"))
        appender.publish()

    assert [launch.status for launch in jsonl.read(file).launches] == ["skipped"]


@pytest.mark.parametrize(
    ("statuses", "has_launched"),
    [((), False), (("skipped", "skipped"), False), (("skipped", "failed"), True), (("ok",), True)],
)
def test_a_run_of_skips_has_launched_nothing(
    tmp_path: Path, statuses: tuple[Status, ...], has_launched: bool
) -> None:
    # A reason is a text of anyone's, with quotes that are escaped.
    launches = [
        replace(a_launch(block=block, status=status), reason='"status":"skipped"')
        for block, status in enumerate(statuses)
    ]

    assert jsonl.has_launched(write_records(tmp_path, a_run(), *launches)) == has_launched


def test_a_second_writer_is_rejected_and_told_the_holder(tmp_path: Path) -> None:
    file = tmp_path / "host" / "run.jsonl"
    with contextlib.closing(jsonl.begin(a_run(), file)) as appender:
        appender.append(a_launch(block=0))
        # As seen by others while a record is being written.
        os.truncate(file, file.stat().st_size - 5)
        before = file.read_bytes()

        with pytest.raises(HostError, match=f"process {os.getpid()} of ") as refused:
            jsonl.Appender(file)

        assert refused.value.exit_code == 3
        assert file.read_bytes() == before
        assert jsonl.read(file).run == a_run()  # readers need no lock
    jsonl.Appender(file).close()


def test_opening_a_complete_file_does_not_write_to_it(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    os.utime(file, (1, 1))

    jsonl.Appender(file).close()

    assert file.stat().st_mtime == 1


def test_records_appended_meanwhile_are_kept(tmp_path: Path) -> None:
    file = a_file(tmp_path, launches=1)
    with contextlib.closing(jsonl.Appender(file)) as appender:
        with file.open("ab") as stream:  # by whoever takes no lock, such as an editor
            stream.write(codec.encode(a_launch(block=1)))
        appender.append(a_launch(block=2))

    assert [launch.block for launch in jsonl.read(file).launches] == [0, 1, 2]


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    file = a_file(tmp_path)
    torn = file.read_bytes()[:-5]
    file.write_bytes(torn)

    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)

    with pytest.raises(InputError, match="cannot lock"):
        jsonl.Appender(file)
    assert file.read_bytes() == torn


def test_a_folder_instead_of_a_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        jsonl.Appender(tmp_path)


def test_a_record_is_on_the_disk_before_append_returns(tmp_path: Path, synced: Synced) -> None:
    file = tmp_path / "records" / "host" / "run.jsonl"
    with contextlib.closing(jsonl.begin(a_run(), file)) as appender:
        for block in range(2):
            appender.append(a_launch(block=block))

            assert synced(file)[-1] == file.read_bytes()


def test_new_folders_are_synced_before_use(tmp_path: Path, synced: Synced) -> None:
    file = tmp_path / "records" / "host" / "run.jsonl"

    with contextlib.closing(jsonl.begin(a_run(), file)) as appender:
        appender.publish()

    assert synced(file)[-1] == file.read_bytes()
    assert "run.jsonl" in synced(file.parent)[-1]
    assert "host" in synced(file.parent.parent)[-1]
    assert "records" in synced(tmp_path)[-1]


def test_a_file_appears_only_after_its_first_line_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synced: Synced
) -> None:
    file = tmp_path / "host" / "run.jsonl"
    replace_file, before = os.replace, []

    def replaced(fresh: Path, target: Path) -> None:
        before.append((Path(fresh).read_bytes(), synced(Path(fresh))))
        replace_file(fresh, target)

    monkeypatch.setattr(os, "replace", replaced)

    with contextlib.closing(jsonl.begin(a_run(), file)) as appender:
        appender.append(a_launch())

    ((content, of_fresh),) = before
    assert content
    assert of_fresh[-1] == content


def test_a_continued_file_is_synced_before_it_grows(tmp_path: Path, synced: Synced) -> None:
    # It may have been made by a process that was killed before it had waited for that.
    file = a_file(tmp_path)
    earlier = len(synced(file.parent))

    jsonl.Appender(file).close()

    assert len(synced(file.parent)) > earlier


def test_a_damaged_line_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    lines = file.read_bytes().split(b"\n")
    lines[2] = lines[2][:50] + b"\xff" + lines[2][51:]
    file.write_bytes(b"\n".join(lines))

    stored = jsonl.read(file)

    assert [launch.block for launch in stored.launches] == [0, 2]
    assert [fault.line for fault in stored.faults] == [3]


def test_records_of_a_newer_corebound_are_rejected(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    file.write_bytes(file.read_bytes().replace(b'"schema":1', b'"schema":999', 1))

    with pytest.raises(InputError, match="newer corebound"):
        jsonl.read(file)


@pytest.mark.parametrize("content", [b"", b"\n", b"hello\n", b'{"kind":"run"}\n'])
def test_a_file_without_records_is_rejected(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(content)

    with pytest.raises(InputError, match="not a file"):
        jsonl.read(file)


def test_an_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "host").write_text("in the way")

    with pytest.raises(InputError, match="cannot be written"):
        jsonl.Appender(tmp_path / "host" / "run.jsonl")
