"""Calibrations, a file each, beside the runs they rest on."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from corebound.errors import Fault, InputError
from corebound.model.calibration import CALIBRATION_SCHEMA, Calibration

_decoder = msgspec.json.Decoder(Calibration)


def folder_of(records: Path) -> Path:
    """Where calibrations are kept, and the runs they rest on, which are no nights."""
    return records / "calibrations"


def keep(one: Calibration, records: Path) -> Path:
    """Keep a calibration; what was kept before stays beside it.

    Raises:
        InputError: it cannot be written.
    """
    name = hashlib.sha256(f"{one.run} {one.scenario}".encode()).hexdigest()[:16]
    file = folder_of(records) / f"{name}.json"
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(msgspec.json.encode(one) + b"\n")
        fresh.replace(file)
    except OSError as error:
        raise InputError(
            what=f"the calibration cannot be kept: {error.strerror}.",
            where=str(error.filename or file),
            mend="Choose another folder with --records, or make this one writable.",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink()
    return file


def read_all(records: Path) -> tuple[tuple[Calibration, ...], tuple[Fault, ...]]:
    """Every calibration there is, oldest first, and the files that hold none."""
    found: list[Calibration] = []
    faults: list[Fault] = []
    for file in sorted(folder_of(records).glob("*.json")):
        try:
            one = _decoder.decode(file.read_bytes())
        except (OSError, msgspec.DecodeError) as error:
            faults.append(_fault(file, str(error)))
            continue
        if one.schema > CALIBRATION_SCHEMA:
            faults.append(_fault(file, f"a newer corebound wrote it (schema {one.schema})"))
        else:
            found.append(one)
    return tuple(sorted(found, key=lambda one: (one.at, one.run, one.scenario))), tuple(faults)


def _fault(file: Path, why: str) -> Fault:
    return Fault(
        file=str(file),
        line=None,
        what=f"this calibration cannot be read and was passed over: {why}.",
        mend="Delete it; `corebound calibrate` makes another.",
    )
