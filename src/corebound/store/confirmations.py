"""What re-runs said of changes, a file each, beside the runs they were judged by."""

from __future__ import annotations

from pathlib import Path

from corebound.errors import Fault
from corebound.model.regression import CONFIRMATION_SCHEMA, Confirmation
from corebound.store import codec, documents, validate

_decode = codec.decoder(Confirmation, CONFIRMATION_SCHEMA, validate.confirmation)


def folder_of(records: Path) -> Path:
    """Where confirmations are kept, and the runs they rest on, which are no nights."""
    return records / "confirmations"


def keep(confirmation: Confirmation, records: Path) -> Path:
    """Keep what a re-run said, in place of what one said in the same night.

    Raises:
        InputError: it cannot be written.
    """
    told_by = f"{confirmation.id} {confirmation.seen}".encode()
    file = documents.file_in(folder_of(records), told_by)
    return documents.keep((codec.encode_document(confirmation),), file, what="what the re-run said")


def read_all(records: Path) -> tuple[tuple[Confirmation, ...], tuple[Fault, ...]]:
    """Every confirmation there is, oldest first, and the files that hold none."""
    found, faults = documents.read_all(
        folder_of(records),
        _decode,
        what="what a re-run said",
        mend="Delete it; `corebound regressions --confirm` asks again.",
    )
    return tuple(sorted(found, key=lambda one: (one.at, one.id))), faults
