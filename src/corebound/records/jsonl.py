"""Append-only record files: one file per run, one record per line."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, overload

from msgspec import Struct

from corebound.errors import Fault, HostError, InputError, collect_fault, report_os_errors
from corebound.machine import lock
from corebound.records import atomic_write, codec
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.text import path_component


class UnreadLaunches(Sequence[Launch]):
    """The launches of one run, read from the file on each access; the reader may cache them."""

    def __init__(self, read: Callable[[], Sequence[Launch]]) -> None:
        """Take the function that reads the launches."""
        self._read = read

    @overload
    def __getitem__(self, index: int) -> Launch: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Launch]: ...
    def __getitem__(self, index: int | slice) -> Launch | Sequence[Launch]:
        """Read the launches and return one or several."""
        return self._read()[index]

    def __len__(self) -> int:
        """Read the launches and count them."""
        return len(self._read())


# The default location of records.
RECORDS = Path("reports/records")


class Stored(Struct, frozen=True, kw_only=True):
    """One run with its launches, as read from its file.

    `faults` are the unreadable lines; the remaining lines are still available.
    """

    file: Path
    run: Run
    launches: tuple[Launch, ...]
    faults: tuple[Fault, ...]


class StoredRun(NamedTuple):
    """A run and its file, whose launches are not read."""

    file: Path
    run: Run


def file_of(run: Run, folder: Path) -> Path:
    """The file of a run, in a folder per host, so that copying merges the records of two hosts."""
    started = run.started_at.replace(":", "").replace("-", "")
    return folder / path_component(run.host.id) / f"{path_component(f'{started}-{run.id}')}.jsonl"


def begin(run: Run, file: Path) -> Appender:
    """Begin a file that appears with its first launch: a run without one hides no earlier run.

    Returns:
        The appender for launches. The file is locked from before other processes can see it.

    Raises:
        InputError: The file cannot be written.
        UnreadableError: The run could not be read back; no file is made.
    """
    codec.decode_run(codec.encode(run)[:-1])
    with _reporting_write_errors(file), contextlib.ExitStack() as stack:
        appender = Appender(file.with_name(f".{file.name}.{os.getpid()}"), becomes=file)
        stack.callback(appender.close)
        appender.append(run)
        stack.pop_all()
    return appender


class Appender:
    """Appends records to a file that no other process appends to.

    Each record is on the disk when `append` returns. Readers need no lock.
    """

    def __init__(self, file: Path, *, becomes: Path | None = None) -> None:
        """Open the file and lock it until `close`; then cut off an incomplete last line.

        A killed run leaves such a line.

        Args:
            file: Created if necessary.
            becomes: The name that `publish` gives to it, and that error messages have; None: its
                own. Without `publish`, `close` removes the file.

        Raises:
            HostError: Another process appends to it; the file is left as it is.
            InputError: It cannot be written, or its file system has no locks.
        """
        self._file = becomes or file
        self._hidden = file if becomes else None
        with _reporting_write_errors(self._file):
            atomic_write.make_folder(file.parent)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(file, flags, 0o644)
            try:
                self._lock()
                length = _complete_length(self._descriptor)
                if length < os.fstat(self._descriptor).st_size:
                    os.ftruncate(self._descriptor, length)
                atomic_write.sync_folder(file.parent)
            except BaseException:
                self.close()
                raise

    def _lock(self) -> None:
        with report_os_errors(
            "its file system cannot lock record files",
            where=self._file,
            fix="Choose a folder on another file system with --records; copy the records later.",
        ):
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = lock.flock_holder(self._descriptor)
                raise HostError(
                    what=f"another run is adding to these records: {holder}.",
                    where=str(self._file),
                    fix="Wait for it to end. `corebound run --resume` then continues that"
                    " run if it is incomplete.",
                ) from None

    def append(self, record: Run | Launch) -> None:
        """Write one record and wait until it is on the disk; a launch publishes the file.

        Raises:
            InputError: The disk is full or missing; earlier records remain.
        """
        data = codec.encode(record)
        with report_os_errors(
            "a record could not be written",
            where=self._file,
            fix="Free some space, then continue with `corebound run --resume`.",
        ):
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        if isinstance(record, Launch) and record.status != "skipped":
            self.publish()

    def publish(self) -> None:
        """Give the file its own name, so that others see it.

        Raises:
            InputError: It cannot be renamed.
        """
        if self._hidden is not None:
            with _reporting_write_errors(self._file):
                self._hidden.replace(self._file)
                self._hidden = None
                atomic_write.sync_folder(self._file.parent)

    def close(self) -> None:
        """Close the file; one that was not published disappears."""
        if self._hidden is not None:
            with contextlib.suppress(OSError):
                self._hidden.unlink()
        os.close(self._descriptor)


def _reporting_write_errors(file: Path) -> AbstractContextManager[None]:
    return report_os_errors(
        "records cannot be written here",
        where=file,
        fix="Choose another folder with --records, or make this one writable.",
    )


def _complete_length(descriptor: int) -> int:
    """The length in bytes up to and including the last newline."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - (1 << 16))
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def stamp(file: Path) -> str:
    """A value that changes whenever a record file does; such files only grow.

    Raises:
        InputError: The file does not exist.
    """
    try:
        status = file.stat()
    except OSError as error:
        raise _unreadable(file, error) from error
    return f"{status.st_size} {status.st_mtime_ns}"


def read(file: Path) -> Stored:
    """Read one run; damaged lines are reported and skipped.

    A last line without its newline was being written when its run was killed.
    This is not a fault: that launch is incomplete.

    Raises:
        InputError: The file cannot be read, or does not start with a run.
    """
    try:
        lines = atomic_write.read(file).split(b"\n")[:-1]
    except OSError as error:
        raise _unreadable(file, error) from error
    run = _run(lines[0] if lines else b"", file)
    launches: list[Launch] = []
    faults: list[Fault] = []
    ids: set[tuple[str, str]] = set()
    for number, line in enumerate(lines[1:], start=2):
        try:
            launches.append(_check_new(codec.decode_launch(line), ids))
        except codec.UnreadableError as error:
            faults.append(
                Fault(
                    file=str(file),
                    line=number,
                    what=f"this record is damaged and was skipped: {error}.",
                    fix="Delete the line, or copy the file again.",
                )
            )
    return Stored(file=file, run=run, launches=tuple(launches), faults=tuple(faults))


def _check_new(launch: Launch, ids: set[tuple[str, str]]) -> Launch:
    key = launch.id, launch.cell.id
    if key in ids:
        raise codec.UnreadableError(
            f"duplicate: an earlier line contains launch {launch.id[:80]} already"
        )
    ids.add(key)
    return launch


def runs(folder: Path, faults: list[Fault]) -> list[StoredRun]:
    """Every record file below a folder, with its run; launches are not read.

    Args:
        faults: Collects each file that cannot be read or holds no run.
    """
    stored = []
    for file in files(folder):
        with collect_fault(file, faults):
            stored.append(StoredRun(file, read_run(file)))
    return stored


def read_run(file: Path) -> Run:
    """Read the run from a file's first line; launches are not read.

    Raises:
        InputError: The file cannot be read, or does not start with a run.
    """
    try:
        with atomic_write.opened(file) as stream:
            line = stream.readline()
    except OSError as error:
        raise _unreadable(file, error) from error
    # A line without its newline was being written when its run was killed.
    return _run(line[:-1] if line.endswith(b"\n") else b"", file)


def has_launched(file: Path) -> bool:
    """Whether a run has a launch that was not skipped; its launches are not decoded.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        with atomic_write.opened(file) as stream:
            stream.readline()
            return any(b'"status":"skipped"' not in line for line in stream)
    except OSError as error:
        raise _unreadable(file, error) from error


def _run(line: bytes, file: Path) -> Run:
    try:
        return codec.decode_run(line)
    except codec.UnreadableError as error:
        raise InputError(
            what=f"not a file of records: {error}.",
            where=f"{file}:1",
            fix="Move it out of the records folder, or read it with the version of corebound"
            " that wrote it.",
        ) from None


def _unreadable(file: Path, error: OSError) -> InputError:
    return InputError(
        what=f"the records cannot be read: {error.strerror}.",
        where=str(file),
        fix="Name a file written by `corebound run`.",
    )


def files(folder: Path) -> Iterator[Path]:
    """Every record file below a folder, with the oldest run first within each host."""
    for host in sorted(path for path in folder.glob("*") if path.is_dir()):
        yield from sorted(host.glob("*.jsonl"))
