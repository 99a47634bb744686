"""What re-runs said of changes, a file each, beside the runs they were judged by."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from corebound.errors import Fault, InputError
from corebound.model.regression import CONFIRMATION_SCHEMA, Confirmation

_decoder = msgspec.json.Decoder(Confirmation)


def folder_of(records: Path) -> Path:
    """Where confirmations are kept, and the runs they rest on, which are no nights."""
    return records / "confirmations"


def keep(confirmation: Confirmation, records: Path) -> Path:
    """Keep what a re-run said, in place of what one said in the same night.

    Raises:
        InputError: it cannot be written.
    """
    data = msgspec.json.encode(confirmation) + b"\n"
    name = hashlib.sha256(f"{confirmation.id} {confirmation.seen}".encode()).hexdigest()[:16]
    file = folder_of(records) / f"{name}.json"
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(data)
        fresh.replace(file)
    except OSError as error:
        raise InputError(
            what=f"what the re-run said cannot be kept: {error.strerror}.",
            where=str(error.filename or file),
            mend="Choose another folder with --records, or make this one writable.",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink()
    return file


def read_all(records: Path) -> tuple[tuple[Confirmation, ...], tuple[Fault, ...]]:
    """Every confirmation there is, oldest first, and the files that hold none."""
    found: list[Confirmation] = []
    faults: list[Fault] = []
    for file in sorted(folder_of(records).glob("*.json")):
        try:
            one = _decoder.decode(file.read_bytes())
        except (OSError, msgspec.DecodeError) as error:
            faults.append(_fault(file, str(error)))
            continue
        if one.schema > CONFIRMATION_SCHEMA:
            faults.append(_fault(file, f"a newer corebound wrote it (schema {one.schema})"))
        else:
            found.append(one)
    return tuple(sorted(found, key=lambda one: (one.at, one.id))), tuple(faults)


def _fault(file: Path, why: str) -> Fault:
    return Fault(
        file=str(file),
        line=None,
        what=f"what a re-run said cannot be read and was passed over: {why}.",
        mend="Delete it; `corebound regressions --confirm` asks again.",
    )
