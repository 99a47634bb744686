"""Store documents beside the runs, one per file: calibrations, confirmations and profiles."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from corebound.errors import Fault, analysis_fault, report_os_errors
from corebound.records import atomic_write, codec, validate
from corebound.records.calibration import CALIBRATION_SCHEMA, Calibration
from corebound.records.decisions import CONFIRMATION_SCHEMA, Confirmation
from corebound.records.launch_record import PROFILE_SCHEMA, ImportedProfile

T = TypeVar("T")


def file_in(folder: Path, content: bytes) -> Path:
    """A file name made from a hash of these bytes, so any characters are allowed in them."""
    return folder / f"{hashlib.sha256(content).hexdigest()[:16]}.json"


def keep(lines: Iterable[bytes], file: Path, *, what: str) -> Path:
    """Write a document atomically, replacing the previous content of its file.

    Args:
        lines: The document, which may be a single line.
        file: Where to write it; the folder is created if necessary.
        what: A description for error messages: `the calibration`.

    Returns:
        The file, written as a whole or not at all.

    Raises:
        InputError: The file cannot be written.
    """
    with (
        report_os_errors(
            f"{what} cannot be stored",
            where=file,
            fix="Choose another folder with --records, or make this one writable.",
        ),
        atomic_write.atomic_write(file) as fresh,
        fresh.open("wb") as out,
    ):
        out.writelines(lines)
    return file


def read_all(
    folder: Path, decode: Callable[[Iterable[bytes]], T], *, what: str, fix: str
) -> tuple[list[T], tuple[Fault, ...]]:
    """Every document in a folder, by file, and those that cannot be read.

    Args:
        folder: The folder; it may be missing.
        decode: Decodes a document's lines, or raises `codec.UnreadableError`.
        what: A description for error messages: `this calibration`.
        fix: How to fix an unreadable document.
    """
    documents: list[T] = []
    faults: list[Fault] = []
    for file in sorted(folder.glob("*.json")):
        try:
            with atomic_write.opened(file) as lines:
                documents.append(decode(lines))
        except (OSError, codec.UnreadableError) as error:
            message = f"{what} cannot be read and was skipped: {error}."
            faults.append(Fault(file=str(file), line=None, what=message, fix=fix))
        except Exception as error:  # noqa: BLE001  # one document must not cost the others
            faults.append(analysis_fault(str(file), error, what=what))
    return documents, tuple(faults)


_decode_calibration = codec.decoder(Calibration, CALIBRATION_SCHEMA, validate.calibration)


def calibrations_folder(records: Path) -> Path:
    """The folder of calibrations and their runs, which are not nightly runs."""
    return records / "calibrations"


def keep_calibration(calibration: Calibration, records: Path) -> Path:
    """Store a calibration; earlier ones are kept.

    Raises:
        InputError: The file cannot be written.
    """
    file = file_in(
        calibrations_folder(records), f"{calibration.run} {calibration.scenario}".encode()
    )
    return keep((codec.encode_document(calibration),), file, what="the calibration")


def read_calibrations(records: Path) -> tuple[tuple[Calibration, ...], tuple[Fault, ...]]:
    """All calibrations, oldest first, and the files that are not valid calibrations."""
    calibrations, faults = read_all(
        calibrations_folder(records),
        _decode_calibration,
        what="this calibration",
        fix="Delete the file and run `corebound calibrate` again.",
    )
    return tuple(
        sorted(
            calibrations,
            key=lambda calibration: (calibration.at, calibration.run, calibration.scenario),
        )
    ), faults


_decode_confirmation = codec.decoder(Confirmation, CONFIRMATION_SCHEMA, validate.confirmation)


def confirmations_folder(records: Path) -> Path:
    """The folder of confirmations and their runs, which are not nightly runs."""
    return records / "confirmations"


def keep_confirmation(confirmation: Confirmation, records: Path) -> Path:
    """Store the result of a re-run, replacing one for the same latest point.

    Raises:
        InputError: The file cannot be written.
    """
    key = f"{confirmation.id} {confirmation.last_point}".encode()
    file = file_in(confirmations_folder(records), key)
    return keep((codec.encode_document(confirmation),), file, what="the confirmation")


def read_confirmations(records: Path) -> tuple[tuple[Confirmation, ...], tuple[Fault, ...]]:
    """All confirmations, oldest first, and the files that are not valid confirmations."""
    confirmations, faults = read_all(
        confirmations_folder(records),
        _decode_confirmation,
        what="this confirmation",
        fix="Delete the file and run `corebound regressions --confirm` again.",
    )
    return tuple(
        sorted(confirmations, key=lambda confirmation: (confirmation.at, confirmation.id))
    ), faults


def tunes_folder(records: Path) -> Path:
    """The folder of the runs of `corebound tune`, which are not nightly runs."""
    return records / "tunes"


def proofs_folder(records: Path) -> Path:
    """The folder of the runs that launch through the files of `corebound tune --emit`."""
    return tunes_folder(records) / "proofs"


_decode_profile = codec.decoder(ImportedProfile, PROFILE_SCHEMA, validate.imported_profile)


def file_of(profile: ImportedProfile, records: Path) -> Path:
    """The file of a profile, named after its values, not after its name or its source files."""
    content = (profile.source, profile.device, profile.profile)
    return file_in(_folder_of(records), codec.canonical(content))


def _folder_of(records: Path) -> Path:
    return records / "profiles"


def keep_profile(profile: ImportedProfile, records: Path, *, rename: bool) -> ImportedProfile:
    """Store a profile; importing it again changes nothing but, optionally, its name.

    Args:
        profile: The imported profile.
        records: The folder of records; created if necessary.
        rename: Whether the new name replaces that of an existing profile.

    Returns:
        The profile as stored.

    Raises:
        InputError: The file cannot be written.
    """
    file = file_of(profile, records)
    if not rename:
        with contextlib.suppress(OSError, codec.UnreadableError):
            return _decode_profile((atomic_write.read(file),))
    keep((codec.encode_document(profile),), file, what="the profile")
    return profile


def read_profiles(records: Path) -> tuple[tuple[ImportedProfile, ...], tuple[Fault, ...]]:
    """All stored profiles, by name, and the files that are not valid profiles."""
    profiles, faults = read_all(
        _folder_of(records),
        _decode_profile,
        what="this profile",
        fix="Delete the file and import the profile again.",
    )
    return tuple(sorted(profiles, key=lambda profile: (profile.name, profile.source))), faults
