"""Read files and folders of profiles: group related files and build one profile from each group."""

import os
import re
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from corebound.errors import Fault, InputError
from corebound.exchange.profiles import detect
from corebound.exchange.profiles.mindspore import TRACE, TYPES
from corebound.exchange.profiles.parts import Iterations, Part, Sum, Sums, Timeline
from corebound.exchange.reading import Unknown, Unreadable, clean
from corebound.records import atomic_write
from corebound.records.launch_record import PROFILE_SCHEMA, ImportedProfile, OperatorProfile
from corebound.worker.operator_table import Operator, Span, Step, steps_of, tabulate

P = TypeVar("P", bound=Part)

# The largest value a record can hold: an integer of 63 bits.
_LARGEST_NS = 1 << 62


def profile_of(parts: Sequence[Part]) -> tuple[str, OperatorProfile]:
    """Build a profile from parts; returns its source, in words, and the profile.

    Start times of operators take precedence over total times. If the same file or another one
    marks iterations, the table is built as for corebound's own profiles. Otherwise, values are
    divided by the number of iterations if that is known, else they cover everything profiled.

    Args:
        parts: The parts of one device, at least one.

    Raises:
        Unreadable: The parts hold no operator, or more time than possible.
    """
    timelines = _best([part for part in parts if isinstance(part, Timeline)])
    sums = _best([part for part in parts if isinstance(part, Sums)])
    steps = _best([part for part in parts if isinstance(part, Iterations)])
    counts = {part.iterations for part in sums} - {None}
    iterations = (
        counts.pop() if len(counts) == 1 else sum(len(part.marks) for part in steps) or None
    )
    if timelines:
        used: list[Part] = [*timelines, *steps]
        profile = _from_timelines(timelines, steps, iterations)
    elif sums:
        used = [*sums, *steps]
        profile = _from_sums([row for part in sums for row in part.rows], steps, iterations)
    else:
        raise Unreadable(
            "the file contains the times of iterations, but no operators.",
            "Also name op_summary or op_statistic of the same export.",
        )
    _check(profile)
    return " and ".join(dict.fromkeys(part.source for part in used)), profile


def _best(parts: Sequence[P]) -> list[P]:
    """Keep the most detailed parts; the others would count the same data again."""
    lowest = min((part.rank for part in parts), default=0)
    return [part for part in parts if part.rank == lowest]


def _check(profile: OperatorProfile) -> None:
    if sum(operator.total_ns for operator in profile.operators) > _LARGEST_NS:
        raise Unreadable(
            "the sum of its times is implausibly large (centuries).", "Export the profile again."
        )


def _from_timelines(
    timelines: Sequence[Timeline], steps: Sequence[Iterations], iterations: int | None
) -> OperatorProfile:
    # Slices of one export each number their threads from 0.
    spans = [
        replace(span, thread=span.thread * len(timelines) + number) if number else span
        for number, timeline in enumerate(timelines)
        for span in timeline.spans
    ]
    marks = [mark for timeline in timelines for mark in timeline.marks]
    marks += [mark for part in steps for mark in part.marks]
    computing = sorted(span for part in steps for span in part.computing)
    steps_with_spans = steps_of(
        sorted(set(marks)), _with_phases(spans, computing) if computing else spans
    )
    # Exports often hold the operators of only some of the iterations.
    if with_operators := [
        step for step in steps_with_spans if any(span.type is not None for span in step.spans)
    ]:
        table = tabulate(with_operators, None)
        return OperatorProfile(
            iterations=table.iterations,
            step_ns=table.step_ns,
            outside_ns=table.outside_ns,
            operators=tuple(table.operators),
            phases=table.phases,
        )
    return _whole_profile(spans, iterations)


def _with_phases(spans: Iterable[Span], computing: Sequence[tuple[int, int]]) -> list[Span]:
    """Label spans by phase: data before a forward pass, update after its backward pass."""
    begins = [begin_ns for begin_ns, _ in computing]
    named = []
    for span in spans:
        latest = bisect_right(begins, span.begin_ns) - 1
        if latest < 0:
            phase = "data"
        elif span.begin_ns < computing[latest][1]:
            phase = "forward and backward"
        else:
            phase = "update"
        named.append(replace(span, phase=phase))
    return named


def _whole_profile(spans: Sequence[Span], iterations: int | None) -> OperatorProfile:
    """A profile of everything that ran, from the first operator's start to the last one's end."""
    operators = [span for span in spans if span.type is not None]
    step = Step(
        begin_ns=min(span.begin_ns for span in operators),
        end_ns=max(span.end_ns for span in operators),
        spans=tuple(spans),
    )
    table = tabulate([step], None)
    divisor = iterations or 1
    return OperatorProfile(
        iterations=iterations,
        # The duration of an iteration without the pauses in between is unknown.
        step_ns=None if iterations else table.step_ns,
        outside_ns=None if iterations else table.outside_ns,
        operators=tuple(
            replace(
                operator,
                calls=operator.calls / divisor,
                total_ns=round(operator.total_ns / divisor),
                quiet_ns=None,
            )
            for operator in table.operators
        ),
        phases={name: round(time_ns / divisor) for name, time_ns in table.phases.items()},
    )


def _from_sums(
    rows: Sequence[Sum], steps: Sequence[Iterations], iterations: int | None
) -> OperatorProfile:
    """A profile from a table of sums; concurrent operators each count in full.

    So the sum of the operators can exceed the step. Time outside operators is unknown even if
    the step's duration is known.
    """
    by_type: dict[str, list[Sum]] = defaultdict(list)
    for row in rows:
        if row.calls:
            by_type[row.type].append(row)
    if not by_type:
        raise Unreadable("the file contains no executed operator.", "Profile while a step runs.")
    marks = [end_ns - begin_ns for part in steps for begin_ns, end_ns in part.marks]
    divisor = iterations or 1
    operators = [_merge_rows(type_, type_rows, divisor) for type_, type_rows in by_type.items()]
    return OperatorProfile(
        iterations=iterations,
        step_ns=round(sum(marks) / len(marks)) if marks else None,
        outside_ns=None,
        operators=tuple(
            sorted(operators, key=lambda operator: (-operator.total_ns, operator.type))
        ),
        phases={},
    )


def _merge_rows(type_: str, rows: Sequence[Sum], iterations: int) -> Operator:
    lows = [row.min_ns for row in rows if row.min_ns is not None]
    highs = [row.max_ns for row in rows if row.max_ns is not None]
    return Operator(
        type=type_,
        calls=sum(row.calls for row in rows) / iterations,
        total_ns=round(sum(row.total_ns for row in rows) / iterations),
        quiet_ns=None,
        min_ns=min(lows) if len(lows) == len(rows) else None,
        max_ns=max(highs) if len(highs) == len(rows) else None,
    )


_PIECE_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_SUFFIXES = (".json", ".json.gz", ".csv", ".csv.gz", ".xplane.pb")
# Before CANN 7, a file name had device, model and iteration; the content had no device.
_OLD_NAME = re.compile(r"_(\d+)_\d+_\d+\.(?:csv|json)$")

# Called with a file, its bytes read and its size.
FileProgress = Callable[[Path, int, int], None]


class UnreadableProfiles(InputError):
    """All errors of one or more files, reported together."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__(what=faults[0].what, where=faults[0].file, fix=faults[0].fix)
        self.faults = faults

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


class _FilePart(Struct, frozen=True, kw_only=True):
    """A part and its file."""

    file: Path
    part: Part


def read_all(
    paths: Sequence[Path], *, name: str | None, progress: FileProgress
) -> tuple[ImportedProfile, ...]:
    """Read every profile in these files and folders; an error in one rejects all.

    Args:
        paths: Files, and folders that are searched for known formats.
        name: A name to use instead of that of the file or folder.
        progress: Called with a file, the number of bytes read, and its size.

    Raises:
        UnreadableProfiles: Some files cannot be read; lists every one.
    """
    faults: list[Fault] = []
    parts: list[_FilePart] = []
    for path in dict.fromkeys(paths):
        try:
            parts += _read_path(path, progress, faults)
        except Unreadable as error:
            faults.append(_fault(path, error))
        except OSError as error:
            faults.append(
                _fault(path, Unreadable(f"cannot be read: {error.strerror}.", "Check its path."))
            )
    groups = _groups(parts)
    profiles = []
    for key, group in groups.items():
        try:
            profiles.append(_profile(group, _label(key, groups, name)))
        except Unreadable as error:
            faults.append(_fault(group[0].file, error))
    if faults:
        raise UnreadableProfiles(tuple(faults))
    return tuple(profiles)


def _fault(path: Path, error: Unreadable) -> Fault:
    return Fault(file=str(path), line=None, what=error.what, fix=error.fix)


def _read_path(path: Path, progress: FileProgress, faults: list[Fault]) -> list[_FilePart]:
    if not path.is_dir():
        return [_FilePart(file=path, part=part) for part in _read_file(path, progress)]
    parts = []
    faults_before = len(faults)
    for file in sorted(path.rglob("*")):
        if not file.name.endswith(_SUFFIXES) or not file.is_file():
            continue
        try:
            parts += [_FilePart(file=file, part=part) for part in _read_file(file, progress)]
        except Unknown:
            continue
        except Unreadable as error:
            faults.append(_fault(file, error))
    if not parts and len(faults) == faults_before:
        raise Unreadable(
            "this folder contains no known profile.",
            "Name a folder written by a profiler, or the file itself.",
        )
    return parts


def _read_file(file: Path, progress: FileProgress) -> tuple[Part, ...]:
    return detect.read(_unpacked(_pieces(file, progress)))


def _pieces(file: Path, progress: FileProgress) -> Iterator[bytes]:
    with atomic_write.opened(file) as source:
        size = os.fstat(source.fileno()).st_size
        bytes_read = 0
        progress(file, bytes_read, size)
        while piece := source.read(_PIECE_BYTES):
            bytes_read += len(piece)
            progress(file, bytes_read, size)
            yield piece


def _unpacked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress gzip content, if it is compressed, in pieces of bounded size."""
    head = next(pieces, b"")
    if not head.startswith(_GZIP):
        yield head
        yield from pieces
        return
    unpacker = zlib.decompressobj(wbits=31)
    try:
        packed: bytes | None = head
        while packed is not None:
            yield unpacker.decompress(packed, _PIECE_BYTES)
            if unpacker.eof:
                # A file may hold several compressed members in sequence.
                packed = unpacker.unused_data or next(pieces, None)
                unpacker = zlib.decompressobj(wbits=31) if packed else unpacker
                packed = packed or None
            else:
                packed = unpacker.unconsumed_tail or next(pieces, None)
    except zlib.error as error:
        raise Unreadable(f"damaged gzip data: {error}.", "Copy the file again.") from None
    if not unpacker.eof:
        raise Unreadable("truncated gzip data.", "Copy the file again.")


def _groups(parts: Sequence[_FilePart]) -> dict[tuple[Path, str | None], list[_FilePart]]:
    """Group parts into profiles: by export and device; each trace is a profile of its own."""
    groups: dict[tuple[Path, str | None], list[_FilePart]] = {}
    for file_part in parts:
        groups.setdefault((_export(file_part), _device(file_part)), []).append(file_part)
    # step_trace_*.json names no device; if its export has only one, it belongs to that one.
    for key in [key for key in groups if key[1] is None]:
        related = [other for other in groups if other[0] == key[0] and other != key]
        if len(related) == 1 and all(
            isinstance(file_part.part, Iterations) for file_part in groups[key]
        ):
            groups[related[0]] += groups.pop(key)
    return groups


def _export(file_part: _FilePart) -> Path:
    if file_part.part.source.startswith("Ascend"):
        return file_part.file.parent
    if file_part.part.source in {TRACE, TYPES}:
        folders = (
            folder for folder in file_part.file.parents if folder.name.endswith("_ascend_ms")
        )
        return next(folders, file_part.file.parent)
    if file_part.part.source.startswith("TensorFlow"):
        return file_part.file.with_name(_stem(file_part.file))
    return file_part.file


def _device(file_part: _FilePart) -> str | None:
    if file_part.part.device is not None or not file_part.part.source.startswith("Ascend"):
        return file_part.part.device
    old_name = _OLD_NAME.search(file_part.file.name)
    return old_name.group(1) if old_name else None


def _label(
    key: tuple[Path, str | None],
    groups: dict[tuple[Path, str | None], list[_FilePart]],
    name: str | None,
) -> str:
    """The given name, or that of the file or folder, with a suffix only if it is ambiguous."""
    export, device = key
    exports = {other for other, _ in groups}
    stem = _stem(export)
    label = name or stem or str(export.resolve().name)
    if name is not None and len(exports) > 1:
        label = f"{name}, {stem}"
    devices = [other for folder, other in groups if folder == export]
    return f"{label}, device {device}" if len(devices) > 1 and device is not None else label


def _stem(file: Path) -> str:
    name = file.name
    for suffix in (".gz", ".json", ".pt.trace", ".trace", ".xplane.pb"):
        name = name.removesuffix(suffix)
    return name or file.name


def _profile(group: Sequence[_FilePart], label: str) -> ImportedProfile:
    source, profile = profile_of([file_part.part for file_part in group])
    return ImportedProfile(
        schema=PROFILE_SCHEMA,
        name=clean(label),
        source=source,
        device=_device(group[0]),
        files=tuple(dict.fromkeys(clean(file_part.file.name) for file_part in group)),
        profile=profile,
    )
