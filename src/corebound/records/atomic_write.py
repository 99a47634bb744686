"""Write files atomically, and into devices and pipes; read only regular files of a bounded size."""

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

# No file that is read as a whole is this large: parsing it would take several times the memory.
LARGEST_BYTES = 2 << 30


@contextlib.contextmanager
def atomic_write(file: Path) -> Iterator[Path]:
    """Yield a temporary file, which replaces `file` when the block ends.

    The folder is created if necessary. If the block fails, the temporary file is removed. A
    symbolic link stays, and the file that it names is replaced. A pipe or a character device
    stays too, and receives the data.

    Raises:
        OSError: The file cannot be written.
    """
    if not (stat.S_ISREG(mode := _mode(file)) or stat.S_ISDIR(mode)):
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder, "data")
            _send(Path(folder, "data"), file)
        return
    target = Path(os.path.realpath(file)) if file.is_symlink() else file
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield fresh
        fresh.replace(target)
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink()


def _mode(file: Path) -> int:
    """The kind of a file, or of the file that a link names; a missing one will be regular."""
    try:
        return file.stat().st_mode
    except FileNotFoundError:
        return stat.S_IFREG


def _send(source: Path, target: Path) -> None:
    """Write a file's content into a pipe or a character device; never into a disk."""
    try:
        # Without O_NONBLOCK, opening a pipe that nothing reads would wait for ever.
        descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO and target.is_fifo():
            error.strerror = "nothing reads from this pipe"
        raise
    with os.fdopen(descriptor, "wb") as stream:
        mode = os.fstat(descriptor).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
            raise OSError(errno.EINVAL, "it is neither a file, a pipe nor a device", str(target))
        os.set_blocking(descriptor, True)
        with source.open("rb") as data:
            shutil.copyfileobj(data, stream)


def put(file: Path, data: bytes) -> None:
    """Write a file in one step; a reader sees either the old one or the new one.

    Raises:
        OSError: The file cannot be written; the old one remains.
    """
    with atomic_write(file) as fresh:
        fresh.write_bytes(data)


def put_durably(file: Path, data: bytes) -> None:
    """As `put`, and the file is on the disk when this returns.

    Raises:
        OSError: The file cannot be written; the old one remains.
    """
    make_folder(file.parent)
    with atomic_write(file) as fresh, fresh.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    sync_folder(file.parent)


def opened(file: Path) -> BufferedReader:
    """Open a regular file for reading; a pipe would block, and a device may never end.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file", str(file))


def read(file: Path) -> bytes:
    """Read a whole file.

    Raises:
        OSError: The file cannot be read, is not a regular file, or is too large.
    """
    with opened(file) as stream:
        if os.fstat(stream.fileno()).st_size > LARGEST_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {LARGEST_BYTES >> 30} GiB", str(file))
        # A file of the kernel of which nothing is ready gives None.
        return stream.read() or b""


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, and wait until they are on the disk.

    Raises:
        OSError: The folder cannot be created.
    """
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for parent in reversed(missing):
        sync_folder(parent.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk: a file's own fsync does not cover its name.

    Source: fsync(2).

    Raises:
        OSError: The folder cannot be read.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
