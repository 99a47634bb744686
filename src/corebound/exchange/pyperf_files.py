"""Files of pyperf, several at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from corebound.errors import Fault, InputError
from corebound.exchange import pyperf_import
from corebound.exchange.reading import Unreadable
from corebound.model.series import Series

Progress = Callable[[int, int], None]


class Read(Struct, frozen=True, kw_only=True):
    """What files came to: series of one point, how many files, what was passed over."""

    series: tuple[Series, ...]
    files: int
    faults: tuple[Fault, ...]


def read_all(paths: Sequence[Path], *, project: str, progress: Progress) -> Read:
    """Read files; those that cannot be read are named and passed over.

    Args:
        paths: Files.
        project: Whose history they are.
        progress: Called with how many files are read, of how many.

    Raises:
        InputError: none can be read.
    """
    faults: list[Fault] = []
    series: list[Series] = []
    for number, path in enumerate(paths):
        progress(number, len(paths))
        try:
            series += pyperf_import.read(path.read_bytes(), project)
        except Unreadable as error:
            faults.append(_fault(path, error.what, error.mend))
        except OSError as error:
            faults.append(_fault(path, f"it cannot be read: {error.strerror}.", "Check its path."))
    if not series:
        first = faults[0]
        raise InputError(what=first.what, where=first.file, mend=first.mend)
    return Read(series=tuple(series), files=len(paths) - len(faults), faults=tuple(faults))


def _fault(path: Path, what: str, mend: str) -> Fault:
    return Fault(file=str(path), line=None, what=f"passed over, for {what}", mend=mend)
