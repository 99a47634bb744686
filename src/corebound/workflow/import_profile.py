"""`corebound import profile` without a terminal: read and store operator profiles."""

from os import PathLike
from pathlib import Path

from msgspec import Struct

from corebound.exchange.profiles import reader
from corebound.exchange.profiles.reader import FileProgress
from corebound.records import documents
from corebound.records.jsonl import RECORDS
from corebound.records.launch_record import ImportedProfile


class StoredProfile(Struct, frozen=True, kw_only=True):
    """An imported profile, and the file that it is stored in."""

    file: str
    profile: ImportedProfile


def import_profiles(
    *files: str | PathLike[str],
    name: str | None = None,
    records: str | PathLike[str] = RECORDS,
    progress: FileProgress = lambda _file, _done, _total: None,
) -> tuple[StoredProfile, ...]:
    """Import operator profiles of PyTorch, TensorFlow, MindSpore or msprof.

    An error in one rejects all.

    Args:
        files: Files that profilers have written, or folders of them.
        name: The profile's name in the report; None takes that of the file or folder.
        records: The folder of records.
        progress: Called with a file, the number of bytes read, and its size.

    Returns:
        Each profile with the file that it is stored in.

    Raises:
        InputError: A file cannot be read (the error lists every one), or a profile cannot be
            written.
    """
    records = Path(records)
    imported = reader.read_all([Path(file) for file in files], name=name, progress=progress)
    stored = []
    for profile in imported:
        # A new name replaces that of the same profile; without one, the known name stays.
        known = documents.PROFILES.find(profile, records) if name is None else None
        file = documents.PROFILES.file_of(profile, records)
        if known is None:
            documents.PROFILES.keep(profile, records)
        stored.append(StoredProfile(file=str(file), profile=known or profile))
    return tuple(stored)
