"""Record files: one run, one file, one line a record; only ever appended to."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import overload

from msgspec import Struct

from corebound.errors import Fault, HostError, InputError, refusals_told
from corebound.machine import lock
from corebound.records import atomic_write, codec
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.text import path_component


class UnreadLaunches(Sequence[Launch]):
    """The launches of one run, read anew each time; whoever reads may remember the last few."""

    def __init__(self, read: Callable[[], Sequence[Launch]]) -> None:
        """Take what reads them."""
        self._read = read

    @overload
    def __getitem__(self, index: int) -> Launch: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Launch]: ...
    def __getitem__(self, index: int | slice) -> Launch | Sequence[Launch]:
        """Read them for one, or some."""
        return self._read()[index]

    def __len__(self) -> int:
        """Read them to count them."""
        return len(self._read())


# Where commands look for records by themselves.
RECORDS = Path("reports/records")


class Stored(Struct, frozen=True, kw_only=True):
    """One run as it was read.

    `faults` are the lines that could not be: the rest is not lost for them.
    """

    file: Path
    run: Run
    launches: tuple[Launch, ...]
    faults: tuple[Fault, ...]


def file_of(run: Run, folder: Path) -> Path:
    """Where a run is kept: by host, so that two hosts' records merge by copying."""
    started = run.started_at.replace(":", "").replace("-", "")
    return folder / path_component(run.host.id) / f"{path_component(f'{started}-{run.id}')}.jsonl"


def begin(run: Run, file: Path) -> Appender:
    """Begin a file with its run, in one step: a run killed as it begins leaves no file.

    Returns:
        What adds launches to the file; it has been locked since before others could see it.

    Raises:
        InputError: it cannot be written.
    """
    with _written_here(file), contextlib.ExitStack() as stack:
        atomic_write.make_folder(file.parent)
        with atomic_write.atomic_write(file) as fresh:
            appender = Appender(fresh, shown=file)
            stack.callback(appender.close)
            appender.append(run)
        atomic_write.sync_folder(file.parent)
        stack.pop_all()
    return appender


class Appender:
    """Adds records to a file that no other process adds to.

    Each is on the disk when `append` returns. Readers need no lock.
    """

    def __init__(self, file: Path, *, shown: Path | None = None) -> None:
        """Open the file and lock it until `close`; then cut off a killed run's torn last line.

        Args:
            file: Created if need be.
            shown: What errors call it, if it is about to be renamed.

        Raises:
            HostError: another process adds to it; it is left as it is.
            InputError: it cannot be written, or its file system has no locks.
        """
        self._file = shown or file
        with _written_here(self._file):
            atomic_write.make_folder(file.parent)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(file, flags, 0o644)
            try:
                self._lock()
                length = _whole(self._descriptor)
                if length < os.fstat(self._descriptor).st_size:
                    os.ftruncate(self._descriptor, length)
                atomic_write.sync_folder(file.parent)
            except BaseException:
                self.close()
                raise

    def _lock(self) -> None:
        with refusals_told(
            "its file system cannot lock record files",
            where=self._file,
            mend="Choose a folder on another file system with --records; copy the records later.",
        ):
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = lock.of_file(self._descriptor)
                raise HostError(
                    what=f"another run is adding to these records: {holder}.",
                    where=str(self._file),
                    mend="Wait for it to end. `corebound run --resume` then continues the run"
                    " if anything is left to do.",
                ) from None

    def append(self, record: Run | Launch) -> None:
        """Write one record and wait until the disk has it.

        Raises:
            InputError: the disk is full or gone; what was there before still is.
        """
        data = codec.encode(record)
        with refusals_told(
            "a record could not be written",
            where=self._file,
            mend="Make room, then continue with `corebound run --resume`.",
        ):
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _written_here(file: Path) -> AbstractContextManager[None]:
    return refusals_told(
        "records cannot be written here",
        where=file,
        mend="Choose another folder with --records, or make this one writable.",
    )


def _whole(descriptor: int) -> int:
    """The length of the part that ends with a newline, in bytes."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - (1 << 16))
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def stamp(file: Path) -> str:
    """What tells whether a file of records is as it was: it is only ever appended to.

    Raises:
        InputError: there is no such file.
    """
    try:
        found = file.stat()
    except OSError as error:
        raise _unreadable(file, error) from error
    return f"{found.st_size} {found.st_mtime_ns}"


def read(file: Path) -> Stored:
    """Read one run; damaged lines are named and passed over.

    A last line without its newline was being written when its run was killed,
    which is no fault: that launch is not finished.

    Raises:
        InputError: the file cannot be read, or does not start with a run.
    """
    try:
        lines = atomic_write.read(file).split(b"\n")[:-1]
    except OSError as error:
        raise _unreadable(file, error) from error
    run = _run(lines[0] if lines else b"", file)
    launches: list[Launch] = []
    faults: list[Fault] = []
    known: set[tuple[str, str]] = set()
    for number, line in enumerate(lines[1:], start=2):
        try:
            launches.append(_another(codec.decode_launch(line), known))
        except codec.UnreadableError as error:
            faults.append(
                Fault(
                    file=str(file),
                    line=number,
                    what=f"this record is damaged and was passed over: {error}.",
                    mend="Delete the line, or fetch the file again from where it was copied.",
                )
            )
    return Stored(file=file, run=run, launches=tuple(launches), faults=tuple(faults))


def _another(launch: Launch, known: set[tuple[str, str]]) -> Launch:
    key = launch.id, launch.cell.id
    if key in known:
        raise codec.UnreadableError(f"an earlier line holds launch {launch.id[:80]} already")
    known.add(key)
    return launch


def runs(folder: Path, faults: list[Fault]) -> list[tuple[Path, Run]]:
    """Every file of records below a folder, with its run; launches stay unread.

    Args:
        folder: The folder.
        faults: Takes each file that cannot be read or holds no run.
    """
    found = []
    for file in files(folder):
        try:
            found.append((file, read_run(file)))
        except InputError as error:
            faults.append(passed_over(file, error))
    return found


def passed_over(file: Path, error: InputError) -> Fault:
    """What is to be said of a file of records that cannot be read, where others can."""
    line = 1 if error.where.endswith(":1") else None
    what = f"this run was passed over: {error.what}"
    return Fault(file=str(file), line=line, what=what, mend=error.mend)


def read_run(file: Path) -> Run:
    """Read what a file is of, which its first line says; launches stay unread.

    Raises:
        InputError: the file cannot be read, or does not start with a run.
    """
    try:
        with atomic_write.opened(file) as stream:
            line = stream.readline()
    except OSError as error:
        raise _unreadable(file, error) from error
    # A line without its end was being written when its run was killed.
    return _run(line[:-1] if line.endswith(b"\n") else b"", file)


def _run(line: bytes, file: Path) -> Run:
    try:
        return codec.decode_run(line)
    except codec.UnreadableError as error:
        raise InputError(
            what=f"not a file of records: {error}.",
            where=f"{file}:1",
            mend="Move it out of the folder of records, or read it with the corebound it is of.",
        ) from None


def _unreadable(file: Path, error: OSError) -> InputError:
    return InputError(
        what=f"the records cannot be read: {error.strerror}.",
        where=str(file),
        mend="Name a file that `corebound run` wrote.",
    )


def files(folder: Path) -> Iterator[Path]:
    """Every file of records below a folder, oldest run first within each host."""
    return iter(sorted(folder.glob("*/*.jsonl")))
