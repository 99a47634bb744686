"""Imported operator profiles: one file each, named by what is in it, beside the runs."""

from __future__ import annotations

import contextlib
from pathlib import Path

from corebound.errors import Fault
from corebound.model.profile import PROFILE_SCHEMA, ImportedProfile
from corebound.store import codec, documents, validate, whole

_decode = codec.decoder(ImportedProfile, PROFILE_SCHEMA, validate.imported_profile)


def file_of(profile: ImportedProfile, records: Path) -> Path:
    """Where a profile is kept: by its figures, whatever it and its files are called."""
    content = (profile.source, profile.device, profile.profile)
    return documents.file_in(_folder_of(records), codec.canonical(content))


def _folder_of(records: Path) -> Path:
    return records / "profiles"


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
            return _decode((whole.read(file),))
    documents.keep((codec.encode_document(profile),), file, what="the profile")
    return profile


def read_all(records: Path) -> tuple[tuple[ImportedProfile, ...], tuple[Fault, ...]]:
    """Every profile that was kept, by name, and the files that are none."""
    found, faults = documents.read_all(
        _folder_of(records),
        _decode,
        what="this profile",
        mend="Delete it and import the profile again.",
    )
    return tuple(sorted(found, key=lambda one: (one.name, one.source))), faults
