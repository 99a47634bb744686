"""Imported operator profiles: one file each, named by what is in it, beside the runs."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from corebound.errors import Fault, InputError
from corebound.model.record import ImportedProfile
from corebound.store import codec


def file_of(profile: ImportedProfile, records: Path) -> Path:
    """Where a profile is kept: by its figures, whatever it and its files are called."""
    content = (profile.source, profile.device, profile.profile)
    return (
        records / "profiles" / f"{hashlib.sha256(codec.canonical(content)).hexdigest()[:16]}.json"
    )


def keep(profile: ImportedProfile, records: Path, *, rename: bool) -> ImportedProfile:
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
            return codec.decode_profile(file.read_bytes())
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(codec.encode_profile(profile))
        fresh.replace(file)
    except OSError as error:
        raise InputError(
            what=f"the profile cannot be kept: {error.strerror}.",
            where=str(error.filename or file),
            mend="Choose another folder with --records, or make this one writable.",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink()
    return profile


def read_all(records: Path) -> tuple[tuple[ImportedProfile, ...], tuple[Fault, ...]]:
    """Every profile that was kept, by name, and the files that are none."""
    profiles: list[ImportedProfile] = []
    faults: list[Fault] = []
    for file in sorted((records / "profiles").glob("*.json")):
        try:
            profiles.append(codec.decode_profile(file.read_bytes()))
        except (OSError, codec.UnreadableError) as error:
            faults.append(
                Fault(
                    file=str(file),
                    line=None,
                    what=f"this profile cannot be read and was passed over: {error}.",
                    mend="Delete it and import the profile again.",
                )
            )
    return tuple(sorted(profiles, key=lambda one: (one.name, one.source))), tuple(faults)
