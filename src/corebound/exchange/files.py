"""Files and folders of profiles: which belong together, and what all of them say."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from corebound.errors import Fault, InputError
from corebound.exchange import recognise
from corebound.exchange.combine import profile_of
from corebound.exchange.mindspore_profile import TRACE, TYPES
from corebound.exchange.reading import Iterations, Part, Unknown, Unreadable, clean
from corebound.model.profile import PROFILE_SCHEMA, ImportedProfile

_PIECE_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_SUFFIXES = (".json", ".json.gz", ".csv", ".csv.gz", ".xplane.pb")
# Before CANN 7 a file was named by device, model and iteration, and had no device in it.
_OLD_NAME = re.compile(r"_(\d+)_\d+_\d+\.(?:csv|json)$")

Progress = Callable[[Path, int, int], None]


class UnreadableProfiles(InputError):
    """Everything that is wrong with one or more files, at once."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__(what=faults[0].what, where=faults[0].file, mend=faults[0].mend)
        self.faults = faults

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


class _Found(Struct, frozen=True, kw_only=True):
    """A part and the file it is of."""

    file: Path
    part: Part


def read_all(
    paths: Sequence[Path], *, name: str | None, progress: Progress
) -> tuple[ImportedProfile, ...]:
    """Every profile in these files and folders; all of them or none.

    Args:
        paths: Files, and folders that are searched for whatever is known.
        name: What to call it instead of the name of its file or folder.
        progress: Called with a file, the bytes of it read, and its size.

    Raises:
        UnreadableProfiles: with every file that cannot be read.
    """
    faults: list[Fault] = []
    found: list[_Found] = []
    for path in dict.fromkeys(paths):
        try:
            found += _read_path(path, progress, faults)
        except Unreadable as error:
            faults.append(_fault(path, error))
        except OSError as error:
            faults.append(
                _fault(path, Unreadable(f"it cannot be read: {error.strerror}.", "Check its path."))
            )
    groups = _groups(found)
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
    return Fault(file=str(path), line=None, what=error.what, mend=error.mend)


def _read_path(path: Path, progress: Progress, faults: list[Fault]) -> list[_Found]:
    if not path.is_dir():
        return [_Found(file=path, part=part) for part in _read_file(path, progress)]
    found = []
    broken = len(faults)
    for file in sorted(path.rglob("*")):
        if not file.name.endswith(_SUFFIXES) or not file.is_file():
            continue
        try:
            found += [_Found(file=file, part=part) for part in _read_file(file, progress)]
        except Unknown:
            continue
        except Unreadable as error:
            faults.append(_fault(file, error))
    if not found and len(faults) == broken:
        raise Unreadable(
            "no profile that is known is in this folder.",
            "Name the folder that a profiler wrote, or the file itself.",
        )
    return found


def _read_file(file: Path, progress: Progress) -> tuple[Part, ...]:
    return recognise.read(_unpacked(_pieces(file, progress)))


def _pieces(file: Path, progress: Progress) -> Iterator[bytes]:
    with file.open("rb") as source:
        size = file.stat().st_size
        done = 0
        progress(file, done, size)
        while piece := source.read(_PIECE_BYTES):
            done += len(piece)
            progress(file, done, size)
            yield piece


def _unpacked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Content as it was before gzip, if it was packed, in portions of bounded size."""
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
                # A file may hold several packed ones, one after another.
                packed = unpacker.unused_data or next(pieces, None)
                unpacker = zlib.decompressobj(wbits=31) if packed else unpacker
                packed = packed or None
            else:
                packed = unpacker.unconsumed_tail or next(pieces, None)
    except zlib.error as error:
        raise Unreadable(f"its gzip is damaged: {error}.", "Fetch it again.") from None
    if not unpacker.eof:
        raise Unreadable("its gzip ends early: it is torn.", "Fetch it again.")


def _groups(found: Sequence[_Found]) -> dict[tuple[Path, str | None], list[_Found]]:
    """What makes one profile: files of one export and device; a trace makes one by itself."""
    groups: dict[tuple[Path, str | None], list[_Found]] = {}
    for one in found:
        groups.setdefault((_export(one), _device(one)), []).append(one)
    # step_trace_*.json names no device; where its export has one only, it is of that.
    for key in [key for key in groups if key[1] is None]:
        beside = [other for other in groups if other[0] == key[0] and other != key]
        if len(beside) == 1 and all(isinstance(one.part, Iterations) for one in groups[key]):
            groups[beside[0]] += groups.pop(key)
    return groups


def _export(one: _Found) -> Path:
    if one.part.source.startswith("Ascend"):
        return one.file.parent
    if one.part.source in {TRACE, TYPES}:
        above = (folder for folder in one.file.parents if folder.name.endswith("_ascend_ms"))
        return next(above, one.file.parent)
    if one.part.source.startswith("TensorFlow"):
        return one.file.with_name(_stem(one.file))
    return one.file


def _device(one: _Found) -> str | None:
    if one.part.device is not None or not one.part.source.startswith("Ascend"):
        return one.part.device
    old = _OLD_NAME.search(one.file.name)
    return old.group(1) if old else None


def _label(
    key: tuple[Path, str | None],
    groups: dict[tuple[Path, str | None], list[_Found]],
    name: str | None,
) -> str:
    """The given name, or that of the file or folder; the rest only where it sets apart."""
    export, device = key
    exports = {other for other, _ in groups}
    own = _stem(export)
    label = name or own or str(export.resolve().name)
    if name is not None and len(exports) > 1:
        label = f"{name}, {own}"
    devices = [other for folder, other in groups if folder == export]
    return f"{label}, device {device}" if len(devices) > 1 and device is not None else label


def _stem(file: Path) -> str:
    name = file.name
    for suffix in (".gz", ".json", ".pt.trace", ".trace", ".xplane.pb"):
        name = name.removesuffix(suffix)
    return name or file.name


def _profile(group: Sequence[_Found], label: str) -> ImportedProfile:
    source, profile = profile_of([one.part for one in group])
    return ImportedProfile(
        schema=PROFILE_SCHEMA,
        name=clean(label),
        source=source,
        device=_device(group[0]),
        files=tuple(dict.fromkeys(clean(one.file.name) for one in group)),
        profile=profile,
    )
