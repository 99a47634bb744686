"""Writing replaces regular files only; reading never waits for a pipe or a device."""

import errno
import os
import threading
from pathlib import Path

import pytest

from corebound.records import atomic_write


def test_a_link_stays_and_the_file_that_it_names_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "real" / "out.csv", tmp_path / "out.csv"
    link.symlink_to(target)

    atomic_write.put(link, b"new")
    atomic_write.put(link, b"newer")

    assert link.is_symlink()
    assert target.read_bytes() == b"newer"
    assert [*target.parent.iterdir()] == [target]


def test_a_full_device_stays_and_the_error_says_so(tmp_path: Path) -> None:
    # /dev itself, because a device cannot be made without privileges; a link leads to it, too.
    before = Path("/dev/full").stat()
    link = tmp_path / "out.csv"
    link.symlink_to("/dev/full")

    for file in (Path("/dev/full"), link):
        with pytest.raises(OSError, match="No space left") as caught:
            atomic_write.put(file, b"data")
        assert caught.value.errno == errno.ENOSPC

    after = Path("/dev/full").stat()
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
    assert link.is_symlink()


def test_a_pipe_gets_the_data(tmp_path: Path) -> None:
    fifo, data = tmp_path / "out.csv", os.urandom(1 << 18)
    os.mkfifo(fifo)
    received: list[bytes] = []
    # Opened first, so that the pipe certainly has a reader.
    reader = os.fdopen(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), "rb")
    os.set_blocking(reader.fileno(), True)

    def write() -> None:
        atomic_write.put(fifo, data)

    with reader:
        writer = threading.Thread(target=write)
        writer.start()
        while sum(map(len, received)) < len(data):
            received.append(reader.read1())
        writer.join()

    assert b"".join(received) == data
    assert fifo.is_fifo()


def test_a_pipe_that_nothing_reads_is_an_error(tmp_path: Path) -> None:
    fifo = tmp_path / "out.csv"
    os.mkfifo(fifo)

    with pytest.raises(OSError, match="nothing reads"):
        atomic_write.put(fifo, b"data")

    assert fifo.is_fifo()


def test_a_folder_is_an_error_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()

    with pytest.raises(OSError, match="directory"):
        atomic_write.put(tmp_path / "out", b"data")

    assert [*tmp_path.rglob("*")] == [tmp_path / "out"]


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    fifo, link, sparse = (tmp_path / name for name in ("fifo", "zero", "sparse"))
    os.mkfifo(fifo)
    link.symlink_to("/dev/zero")
    with sparse.open("wb") as stream:
        stream.truncate(atomic_write.LARGEST_BYTES + 1)

    for file in (fifo, link, sparse):
        with pytest.raises(OSError, match=r"regular file|larger"):
            atomic_write.read(file)
