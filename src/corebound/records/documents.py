"""Documents beside the runs, a file each: calibrations, confirmations, profiles."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from corebound.errors import Fault, refusals_told
from corebound.records import atomic_write, codec, validate
from corebound.records.calibration import CALIBRATION_SCHEMA, Calibration
from corebound.records.decisions import CONFIRMATION_SCHEMA, Confirmation
from corebound.records.launch_record import PROFILE_SCHEMA, ImportedProfile

T = TypeVar("T")


def file_in(folder: Path, content: bytes) -> Path:
    """The file of what is told apart by these bytes, whatever characters they are."""
    return folder / f"{hashlib.sha256(content).hexdigest()[:16]}.json"


def keep(lines: Iterable[bytes], file: Path, *, what: str) -> Path:
    """Keep a document in place of what its file held.

    Args:
        lines: The document, which may be one line.
        file: Where it goes; the folder is made if need be.
        what: What it is, for people: `the calibration`.

    Returns:
        The file, which appears whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    with (
        refusals_told(
            f"{what} cannot be kept",
            where=file,
            mend="Choose another folder with --records, or make this one writable.",
        ),
        atomic_write.atomic_write(file) as fresh,
        fresh.open("wb") as out,
    ):
        out.writelines(lines)
    return file


def read_all(
    folder: Path, decode: Callable[[Iterable[bytes]], T], *, what: str, mend: str
) -> tuple[list[T], tuple[Fault, ...]]:
    """Every document in a folder, by file, and those that cannot be read.

    Args:
        folder: Where they are; there may be none.
        decode: Told its lines, reads one, or raises `codec.UnreadableError`.
        what: What one is, for people: `this calibration`.
        mend: What to do about one that cannot be read.
    """
    found: list[T] = []
    faults: list[Fault] = []
    for file in sorted(folder.glob("*.json")):
        try:
            with atomic_write.opened(file) as lines:
                found.append(decode(lines))
        except (OSError, codec.UnreadableError) as error:
            what_of_it = f"{what} cannot be read and was passed over: {error}."
            faults.append(Fault(file=str(file), line=None, what=what_of_it, mend=mend))
    return found, tuple(faults)


_decode_calibration = codec.decoder(Calibration, CALIBRATION_SCHEMA, validate.calibration)


def calibrations_folder(records: Path) -> Path:
    """Where calibrations are kept, and the runs they rest on, which are no nights."""
    return records / "calibrations"


def keep_calibration(one: Calibration, records: Path) -> Path:
    """Keep a calibration; what was kept before stays beside it.

    Raises:
        InputError: it cannot be written.
    """
    file = file_in(calibrations_folder(records), f"{one.run} {one.scenario}".encode())
    return keep((codec.encode_document(one),), file, what="the calibration")


def read_calibrations(records: Path) -> tuple[tuple[Calibration, ...], tuple[Fault, ...]]:
    """Every calibration there is, oldest first, and the files that hold none."""
    found, faults = read_all(
        calibrations_folder(records),
        _decode_calibration,
        what="this calibration",
        mend="Delete it; `corebound calibrate` makes another.",
    )
    return tuple(sorted(found, key=lambda one: (one.at, one.run, one.scenario))), faults


_decode_confirmation = codec.decoder(Confirmation, CONFIRMATION_SCHEMA, validate.confirmation)


def confirmations_folder(records: Path) -> Path:
    """Where confirmations are kept, and the runs they rest on, which are no nights."""
    return records / "confirmations"


def keep_confirmation(confirmation: Confirmation, records: Path) -> Path:
    """Keep what a re-run said, in place of what one said in the same night.

    Raises:
        InputError: it cannot be written.
    """
    told_by = f"{confirmation.id} {confirmation.seen}".encode()
    file = file_in(confirmations_folder(records), told_by)
    return keep((codec.encode_document(confirmation),), file, what="what the re-run said")


def read_confirmations(records: Path) -> tuple[tuple[Confirmation, ...], tuple[Fault, ...]]:
    """Every confirmation there is, oldest first, and the files that hold none."""
    found, faults = read_all(
        confirmations_folder(records),
        _decode_confirmation,
        what="what a re-run said",
        mend="Delete it; `corebound regressions --confirm` asks again.",
    )
    return tuple(sorted(found, key=lambda one: (one.at, one.id))), faults


_decode_profile = codec.decoder(ImportedProfile, PROFILE_SCHEMA, validate.imported_profile)


def file_of(profile: ImportedProfile, records: Path) -> Path:
    """Where a profile is kept: by its figures, whatever it and its files are called."""
    content = (profile.source, profile.device, profile.profile)
    return file_in(_folder_of(records), codec.canonical(content))


def _folder_of(records: Path) -> Path:
    return records / "profiles"


def keep_profile(profile: ImportedProfile, records: Path, *, rename: bool) -> ImportedProfile:
    """Keep a profile; importing it again changes nothing, but perhaps its name.

    Args:
        profile: What was read.
        records: The folder of records; made if need be.
        rename: Whether the name of one that is there already gives way.

    Returns:
        The profile as it is kept.

    Raises:
        InputError: it cannot be written.
    """
    file = file_of(profile, records)
    if not rename:
        with contextlib.suppress(OSError, codec.UnreadableError):
            return _decode_profile((atomic_write.read(file),))
    keep((codec.encode_document(profile),), file, what="the profile")
    return profile


def read_profiles(records: Path) -> tuple[tuple[ImportedProfile, ...], tuple[Fault, ...]]:
    """Every profile that was kept, by name, and the files that are none."""
    found, faults = read_all(
        _folder_of(records),
        _decode_profile,
        what="this profile",
        mend="Delete it and import the profile again.",
    )
    return tuple(sorted(found, key=lambda one: (one.name, one.source))), faults
