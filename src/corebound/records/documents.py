"""Store documents beside the runs, one per file: calibrations, confirmations and profiles."""

import contextlib
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Generic, TypeVar

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


class Documents(Generic[T]):
    """The documents of one kind in a folder of records, each in a file of its own."""

    def __init__(
        self,
        kind: type[T],
        *,
        schema: int,
        check: Callable[[T], None],
        folder: str,
        noun: str,
        fix: str,
        key: Callable[[T], bytes],
        order: Callable[[T], Any],
    ) -> None:
        """Describe the kind.

        Args:
            schema: The newest schema that this version supports.
            check: Raises ValueError if a document is inconsistent.
            folder: The name of their folder, which may hold runs, too.
            noun: What a document is, for messages.
            fix: How to fix an unreadable one.
            key: What distinguishes a document from those that it does not replace.
            order: The sort key of documents.
        """
        self._decode = codec.decoder(kind, schema, check)
        self._folder, self._noun, self._fix = folder, noun, fix
        self._key, self._order = key, order

    def folder(self, records: Path) -> Path:
        """Their folder below the records."""
        return records / self._folder

    def file_of(self, document: T, records: Path) -> Path:
        """The file of a document."""
        return file_in(self.folder(records), self._key(document))

    def keep(self, document: T, records: Path) -> Path:
        """Store a document, replacing one with the same key.

        Raises:
            InputError: The file cannot be written.
        """
        lines = (codec.encode_document(document),)
        return keep(lines, self.file_of(document, records), what=f"the {self._noun}")

    def find(self, document: T, records: Path) -> T | None:
        """The stored document with the same key; None if there is no readable one."""
        with contextlib.suppress(OSError, codec.UnreadableError):
            return self._decode((atomic_write.read(self.file_of(document, records)),))
        return None

    def read(self, records: Path) -> tuple[tuple[T, ...], tuple[Fault, ...]]:
        """All documents in order, and the files that are not valid ones."""
        found, faults = read_all(
            self.folder(records), self._decode, what=f"this {self._noun}", fix=self._fix
        )
        return tuple(sorted(found, key=self._order)), faults


# Their folders also hold the runs that they come from, which are not nightly runs.
CALIBRATIONS = Documents(
    Calibration,
    schema=CALIBRATION_SCHEMA,
    check=validate.calibration,
    folder="calibrations",
    noun="calibration",
    fix="Delete the file and run `corebound calibrate` again.",
    key=lambda calibration: f"{calibration.run} {calibration.scenario}".encode(),
    order=lambda calibration: (calibration.at, calibration.run, calibration.scenario),
)
CONFIRMATIONS = Documents(
    Confirmation,
    schema=CONFIRMATION_SCHEMA,
    check=validate.confirmation,
    folder="confirmations",
    noun="confirmation",
    fix="Delete the file and run `corebound regressions --confirm` again.",
    key=lambda confirmation: f"{confirmation.id} {confirmation.last_point}".encode(),
    order=lambda confirmation: (confirmation.at, confirmation.id),
)
# A profile is named after its values, not after its name or its source files.
PROFILES = Documents(
    ImportedProfile,
    schema=PROFILE_SCHEMA,
    check=validate.imported_profile,
    folder="profiles",
    noun="profile",
    fix="Delete the file and import the profile again.",
    key=lambda profile: codec.canonical((profile.source, profile.device, profile.profile)),
    order=lambda profile: (profile.name, profile.source),
)


def tunes_folder(records: Path) -> Path:
    """The folder of the runs of `corebound tune`, which are not nightly runs."""
    return records / "tunes"


def proofs_folder(records: Path) -> Path:
    """The folder of the runs that launch through the files of `corebound tune --emit`."""
    return tunes_folder(records) / "proofs"
