"""Calibrations, a file each, beside the runs they rest on."""

from __future__ import annotations

from pathlib import Path

from corebound.errors import Fault
from corebound.model.calibration import CALIBRATION_SCHEMA, Calibration
from corebound.store import codec, documents, validate

_decode = codec.decoder(Calibration, CALIBRATION_SCHEMA, validate.calibration)


def folder_of(records: Path) -> Path:
    """Where calibrations are kept, and the runs they rest on, which are no nights."""
    return records / "calibrations"


def keep(one: Calibration, records: Path) -> Path:
    """Keep a calibration; what was kept before stays beside it.

    Raises:
        InputError: it cannot be written.
    """
    file = documents.file_in(folder_of(records), f"{one.run} {one.scenario}".encode())
    return documents.keep((codec.encode_document(one),), file, what="the calibration")


def read_all(records: Path) -> tuple[tuple[Calibration, ...], tuple[Fault, ...]]:
    """Every calibration there is, oldest first, and the files that hold none."""
    found, faults = documents.read_all(
        folder_of(records),
        _decode,
        what="this calibration",
        mend="Delete it; `corebound calibrate` makes another.",
    )
    return tuple(sorted(found, key=lambda one: (one.at, one.run, one.scenario))), faults
