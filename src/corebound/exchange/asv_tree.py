"""A tree of asv's results: which files it has, read one after another, and what is wrong there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from corebound.errors import Fault
from corebound.exchange import asv_results, asv_series
from corebound.exchange.asv_results import ResultFile
from corebound.exchange.asv_series import Known
from corebound.exchange.reading import Unreadable
from corebound.store import cache

_ABOUT = ("machine.json", "benchmarks.json")

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Which result files there are.

    Attributes:
        files: Those to be read.
        unchanged: Hashes of those that are as they were before, by path.
        commits: What may be the commits of those to be read.
    """

    files: tuple[Path, ...]
    unchanged: Mapping[str, str]
    commits: frozenset[str]


def unread(results: Path, before: Mapping[str, str], faults: list[Fault]) -> Unread:
    """Look for result files; those that are as they were before are hashed only."""
    files: list[Path] = []
    unchanged: dict[str, str] = {}
    commits: set[str] = set()
    for source in sorted(file for file in results.rglob("*.json") if file.name not in _ABOUT):
        try:
            data = source.read_bytes()
        except OSError as error:
            faults.append(fault_of(source, _not_read(error)))
            continue
        known = before.get(str(source))
        if known is not None and known == cache.digest(data):
            unchanged[str(source)] = known
        else:
            files.append(source)
            commits.update(asv_results.hashes_in(data))
    return Unread(files=tuple(files), unchanged=unchanged, commits=frozenset(commits))


def read_each(
    found: Unread, progress: Progress, faults: list[Fault]
) -> Iterator[tuple[Path, str, ResultFile]]:
    """Each file with its hash, one after another: all of them together can be gigabytes."""
    done, all_ = len(found.unchanged), len(found.unchanged) + len(found.files)
    for number, source in enumerate(found.files, start=done):
        progress(number, all_)
        try:
            data = source.read_bytes()
            file = asv_results.read(data)
            # Where it does not tell, its folder does: asv names it by the machine.
            named = file if file.machine else replace(file, machine=source.parent.name)
            yield source, cache.digest(data), named
        except Unreadable as error:
            faults.append(fault_of(source, error))
        except OSError as error:
            faults.append(fault_of(source, _not_read(error)))
    progress(all_, all_)


def benchmarks_of(results: Path, faults: list[Fault]) -> dict[str, Known]:
    """What benchmarks.json says, if anything."""
    about = results / "benchmarks.json"
    try:
        return asv_series.known(asv_results.document(about.read_bytes()))
    except FileNotFoundError:
        return {}
    except Unreadable as error:
        faults.append(fault_of(about, error))
    except OSError as error:
        faults.append(fault_of(about, _not_read(error)))
    return {}


def _not_read(error: OSError) -> Unreadable:
    return Unreadable(f"it cannot be read: {error.strerror}.", "Check its permissions.")


def fault_of(file: Path, error: Unreadable) -> Fault:
    return Fault(file=str(file), line=None, what=f"passed over, for {error.what}", mend=error.mend)
