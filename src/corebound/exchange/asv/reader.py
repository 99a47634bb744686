"""Read a tree of asv's results file by file, and report damaged files."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import Fault, encodable
from corebound.exchange.asv import results as asv_results
from corebound.exchange.asv.environments import MergeOptions, Source
from corebound.exchange.asv.layout import (
    BENCHMARKS,
    CONFIGURATION_SUFFIX,
    INDEX,
    benchmarks_file,
    has_graphs,
)
from corebound.exchange.asv.results import BenchmarkEntry, ResultFile
from corebound.exchange.reading import Progress, Unreadable, clean, parse_json
from corebound.records import atomic_write, cache

_METADATA = ("machine.json", BENCHMARKS)
_PUBLISHED = (INDEX, "info.json", "regressions.json")
# The start of every document of corebound's, whose records may be below the results.
_COREBOUND_START = b'{"schema":'
_NO_BENCHMARKS = (
    "the file is missing, so units are derived from benchmark names, and parameters have no names."
)
_NO_BENCHMARKS_FIX = "Copy it from the folder in which asv ran."


class Unread(Struct, frozen=True, kw_only=True):
    """The result files to read, and those that are unchanged.

    Attributes:
        unchanged: What is known of unchanged files, by path.
        commits: Possible commits of the files to read.
    """

    files: tuple[Path, ...]
    unchanged: Mapping[str, Source]
    commits: frozenset[str]


def unread(results: Path, cached: Mapping[str, Source], faults: list[Fault]) -> Unread:
    """List result files; unchanged ones are only hashed."""
    files: list[Path] = []
    unchanged: dict[str, Source] = {}
    commits: set[str] = set()
    for source in _result_files(results):
        try:
            data = atomic_write.read(source)
        except OSError as error:
            faults.append(fault_of(source, _unreadable(error)))
            continue
        if data.startswith(_COREBOUND_START):
            continue
        source_entry = cached.get(name_of(source))
        if source_entry is not None and source_entry.digest == cache.digest(data):
            unchanged[name_of(source)] = source_entry
        else:
            files.append(source)
            commits.update(asv_results.hashes_in(data))
    return Unread(files=tuple(files), unchanged=unchanged, commits=frozenset(commits))


def _result_files(results: Path) -> Iterator[Path]:
    """List possible result files in order; skip published pages and configuration."""
    candidates = (
        file for file in results.rglob("*.json") if not file.name.endswith(CONFIGURATION_SUFFIX)
    )
    files = sorted(file for file in candidates if file.name not in _METADATA)
    sites = {file.parent for file in files if file.name == INDEX and has_graphs(file.parent)}
    for file in files:
        is_page = file.name in _PUBLISHED and file.parent in sites
        if not is_page and not any(file.is_relative_to(site / "graphs") for site in sites):
            yield file


def read_each(
    unread_files: Unread, merge_options: MergeOptions, progress: Progress, faults: list[Fault]
) -> Iterator[tuple[Path, str, ResultFile]]:
    """Yield each file with its hash, one at a time: together they can be gigabytes."""
    already_read, total = (
        len(unread_files.unchanged),
        len(unread_files.unchanged) + len(unread_files.files),
    )
    for number, source in enumerate(unread_files.files, start=already_read):
        progress(number, total)
        try:
            data = atomic_write.read(source)
            file = asv_results.read(data, under_test=merge_options.under_test)
            # Without a machine in the file, use its folder, which asv names after the machine.
            machine = merge_options.machine or file.machine or source.parent.name
            yield source, cache.digest(data), replace(file, machine=machine)
        except Unreadable as error:
            faults.append(fault_of(source, error))
        except OSError as error:
            faults.append(fault_of(source, _unreadable(error)))
    progress(total, total)


def name_of(file: Path) -> str:
    """A file's path as text that can be stored and displayed, whatever bytes it has."""
    return encodable(str(file))


def read_benchmarks(results: Path, faults: list[Fault]) -> dict[str, BenchmarkEntry]:
    """Read benchmarks.json; empty if there is nothing to read."""
    file = benchmarks_file(results)
    try:
        return asv_results.parse_benchmarks(parse_json(atomic_write.read(file)))
    except FileNotFoundError:
        faults.append(
            Fault(file=name_of(file), line=None, what=_NO_BENCHMARKS, fix=_NO_BENCHMARKS_FIX)
        )
    except Unreadable as error:
        faults.append(fault_of(file, error))
    except OSError as error:
        faults.append(fault_of(file, _unreadable(error)))
    return {}


def damage_fault(source: Path, file: ResultFile, damaged: Sequence[str]) -> Fault:
    """The message for a file in which some benchmarks cannot be read, with reasons."""
    if len(damaged) == len(file.results):
        return fault_of(source, asv_results.damaged(clean(damaged[0])))
    return Fault(
        file=name_of(source),
        line=None,
        what=f"{len(damaged)} of {len(file.results)} benchmarks are damaged and were "
        f"skipped: {clean(damaged[0])}.",
        fix="Measure them again, or copy the file again.",
    )


def _unreadable(error: OSError) -> Unreadable:
    return Unreadable(f"cannot be read: {error.strerror}.", "Check its permissions.")


def fault_of(file: Path, error: Unreadable) -> Fault:
    return Fault(file=name_of(file), line=None, what=f"skipped: {error.what}", fix=error.fix)
