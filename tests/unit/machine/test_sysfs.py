"""A saved machine may hold anything: what is not a regular file has no text."""

import os
from pathlib import Path

import pytest

from corebound.machine.sysfs import LIVE, Files


@pytest.mark.timeout(20)
def test_only_regular_files_have_a_text(tmp_path: Path) -> None:
    folder = tmp_path / "sys"
    folder.mkdir()
    os.mkfifo(folder / "fifo")
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "terminal").symlink_to("/dev/tty")
    (folder / "folder").mkdir()
    (folder / "value").write_text("60\n")

    texts = {file.name: Files(tmp_path).read(f"sys/{file.name}") for file in folder.iterdir()}

    assert texts.pop("value") == "60\n"
    assert set(texts.values()) == {None}


def test_a_refused_file_stays_open_no_longer_than_its_reading(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    before = len([*Path("/proc/self/fd").iterdir()])

    for _ in range(10):
        assert Files(tmp_path).read("sys") is None

    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_files_of_the_kernel_are_read() -> None:
    assert LIVE.read("proc/self/status")
    assert LIVE.read("sys/devices/system/cpu/online") or not Path("/sys/devices").is_dir()
