"""Specifies how temporary folders are named, locked and removed."""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from corebound.errors import HostError, InputError
from corebound.launch import scratch, supervisor


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder whose path alone fills a socket's address."""
    folder = tmp_path / ("x" * 107)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def left(place: Path, stack: ExitStack) -> Path:
    """A folder as a process leaves it that is killed: with its files, and locked by nobody."""
    folder = stack.enter_context(scratch.scratch_folder(place))
    (folder / "launch-0").mkdir()
    (folder / "launch-0" / "log").write_text("killed")
    kept = folder.resolve().rename(place / "kept")
    link = folder.readlink() if folder.is_symlink() else None
    stack.close()
    kept.rename(link or folder)
    if link is not None:
        folder.symlink_to(link)
    return folder


def test_a_folder_with_a_long_path_gets_a_short_name_and_stays_where_it_is(
    temporary: Path, tmp_path: Path
) -> None:
    with scratch.scratch_folder(tmp_path) as folder:
        assert folder.parent == tmp_path
        assert folder.resolve().parent == temporary.resolve()
        assert folder.is_dir()

    assert list(temporary.iterdir()) == []
    assert list(tmp_path.iterdir()) == [temporary]


def test_a_folder_with_a_short_path_needs_no_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")

    with scratch.scratch_folder() as folder:
        assert not folder.is_symlink()
        assert folder.parent == Path("/tmp")
        (folder / "file").touch()

    assert not folder.exists()


def test_an_error_without_a_short_link_names_the_longest_tmpdir(
    temporary: Path, tmp_path: Path
) -> None:
    with pytest.raises(HostError) as caught, scratch.scratch_folder(tmp_path / "missing"):
        pass

    # 107 of an address, less 64 for what is below, less `/corebound-scratch-` and 8 at random.
    assert "16 characters" in str(caught.value)
    assert str(temporary) in str(caught.value)
    assert list(temporary.iterdir()) == []


def test_an_unwritable_temporary_folder_is_a_user_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))

    with (
        pytest.raises(InputError, match="no temporary folder can be made"),
        scratch.scratch_folder(tmp_path),
    ):
        pass


def test_folders_of_killed_processes_are_removed_by_the_next_process(
    temporary: Path, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        dead = left(tmp_path, stack)

    with scratch.scratch_folder(tmp_path) as folder:
        assert {*temporary.iterdir()} == {folder.resolve()}
        assert {*tmp_path.iterdir()} == {folder, temporary}
        assert not dead.is_symlink()


def test_a_link_whose_folder_is_gone_is_removed(temporary: Path, tmp_path: Path) -> None:
    dangling = tmp_path / "corebound-scratch-abcd1234"
    dangling.symlink_to(temporary / "corebound-scratch-gone0000")

    with scratch.scratch_folder(tmp_path):
        assert not dangling.is_symlink()


def test_a_folder_that_a_living_process_holds_stays(temporary: Path, tmp_path: Path) -> None:
    with scratch.scratch_folder(tmp_path) as living, scratch.scratch_folder(tmp_path):
        assert living.is_dir()


def test_a_supervisor_holds_the_folder_of_a_runner_that_was_killed(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    open_folder = os.open

    def kept(path: str, flags: int) -> int:
        opened.append(open_folder(path, flags))
        return opened[-1]

    with ExitStack() as stack:
        folder = left(tmp_path, stack)
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", kept)
        supervisor.lock_folder(str(folder))

    try:
        with scratch.scratch_folder(tmp_path):
            assert folder.is_dir()
    finally:
        for descriptor in opened:
            os.close(descriptor)
    with scratch.scratch_folder(tmp_path):
        assert not folder.exists()


@pytest.mark.parametrize(
    "name",
    ["corebound-scratch-mine", "corebound-abcd1234", "corebound-scratch-abcd1234.old", "abcd1234"],
)
def test_folders_of_other_names_stay(temporary: Path, tmp_path: Path, name: str) -> None:
    (temporary / name).mkdir()
    (tmp_path / "corebound-scratch-abcd1234").symlink_to(temporary / name)

    with scratch.scratch_folder(tmp_path):
        assert (temporary / name).is_dir()
        assert (tmp_path / "corebound-scratch-abcd1234").is_symlink()


def test_another_users_folder_stays(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        theirs = left(tmp_path, stack)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    with scratch.scratch_folder(tmp_path):
        assert (theirs / "launch-0" / "log").read_text() == "killed"


def test_a_new_folder_removed_as_abandoned_is_created_again(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, made = tempfile.mkdtemp, []

    def taken_once(**words: str) -> str:
        made.append(make(**words))
        if len(made) == 1:
            Path(made[0]).rmdir()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", taken_once)

    with scratch.scratch_folder(tmp_path) as folder:
        assert folder.resolve() == Path(made[1])
