"""`corebound import profile` without a terminal: read and store operator profiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from corebound.exchange.profiles import reader
from corebound.exchange.profiles.reader import FileProgress
from corebound.records import documents
from corebound.records.launch_record import ImportedProfile


class StoredProfile(Struct, frozen=True, kw_only=True):
    """An imported profile, and the file that it is stored in."""

    file: str
    profile: ImportedProfile


def import_profiles(
    paths: Sequence[Path], records: Path, progress: FileProgress, *, name: str | None = None
) -> tuple[StoredProfile, ...]:
    """Import operator profiles; an error in one rejects all.

    Args:
        paths: Files that profilers have written, or folders of them.
        records: The folder of records.
        progress: Called with a file, the number of bytes read, and its size.
        name: The profile's name in the report; None takes that of the file or folder.

    Raises:
        UnreadableProfiles: Some files cannot be read; lists every one.
        InputError: A profile cannot be written.
    """
    imported = reader.read_all(paths, name=name, progress=progress)
    stored = [
        documents.keep_profile(profile, records, rename=name is not None) for profile in imported
    ]
    return tuple(
        StoredProfile(file=str(documents.file_of(profile, records)), profile=profile)
        for profile in stored
    )
