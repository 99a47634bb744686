"""What of a night has been done: a line as each step begins and ends, on the disk at once.

A night that was killed has a journal without an end; the next one goes on with it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from corebound.errors import refusals_told
from corebound.records import atomic_write

NAME = "journal.jsonl"
SCHEMA = 1
# As file names of records begin, so that tonight's can be told.
STAMP = "%Y%m%dT%H%M%SZ"
# A night older than this is over: the next one has commits of its own to measure.
LONGEST = timedelta(hours=12)


class Journal(Struct, frozen=True, kw_only=True):
    """One night's.

    Attributes:
        folder: It and the logs of its steps.
        asked: What the night was asked for; another question is another night.
        codes: For the steps that have ended, their exit codes.
    """

    folder: Path
    asked: tuple[str, ...]
    codes: dict[str, int]

    @property
    def stamp(self) -> str:
        """When it began, as file names say it."""
        return self.folder.name

    def began(self, step: str, at: str) -> None:
        """Note that a step begins."""
        _append(self.folder, {"step": step, "event": "began", "at": at})

    def ended(self, step: str, code: int, at: str) -> Self:
        """Note how a step ended."""
        _append(self.folder, {"step": step, "event": "ended", "code": code, "at": at})
        self.codes[step] = code
        return self

    def over(self, code: int, at: str) -> None:
        """Note that the night is over: it will not be gone on with."""
        _append(self.folder, {"event": "over", "code": code, "at": at})


def begin(folder: Path, asked: Sequence[str], now: datetime) -> Journal:
    """Begin a night.

    Args:
        folder: Of all nights.
        asked: What it is asked for.
        now: In UTC.
    """
    night = folder / now.strftime(STAMP)
    while night.exists():
        now += timedelta(seconds=1)
        night = folder / now.strftime(STAMP)
    with refusals_told(
        "the night's journal cannot be kept",
        where=night,
        mend="Make that folder writable, or name another with --nights.",
    ):
        atomic_write.make_folder(night)
        _append(night, {"schema": SCHEMA, "asked": list(asked)})
        atomic_write.sync_folder(night)
    return Journal(folder=night, asked=tuple(asked), codes={})


def _append(folder: Path, line: dict[str, Any]) -> None:
    """Write a line to a night's journal, and wait until the disk has it."""
    file = folder / NAME
    with (
        refusals_told(
            "the night's journal cannot be written",
            where=file,
            mend="Make room, and start the night again: it goes on where it was.",
        ),
        file.open("ab") as stream,
    ):
        # A line that was torn as its night was killed stays torn, and alone.
        if stream.tell() and not file.read_bytes().endswith(b"\n"):
            stream.write(b"\n")
        stream.write(f"{json.dumps(line)}\n".encode())
        stream.flush()
        os.fsync(stream.fileno())


def unfinished(folder: Path, asked: Sequence[str], now: datetime) -> Journal | None:
    """The latest night, if it was asked for the same, was cut short, and is not long past."""
    nights = sorted(folder.glob(f"*/{NAME}"))
    if not nights:
        return None
    lines = [found for line in nights[-1].read_bytes().split(b"\n") if (found := _read(line))]
    night = nights[-1].parent
    if not lines or lines[0].get("asked") != list(asked) or lines[0].get("schema") != SCHEMA:
        return None
    if any(line.get("event") == "over" for line in lines) or _age(night.name, now) > LONGEST:
        return None
    ended = (line for line in lines if line.get("event") == "ended")
    codes = {
        line["step"]: line["code"]
        for line in ended
        if isinstance(line.get("step"), str) and isinstance(line.get("code"), int)
    }
    return Journal(folder=night, asked=tuple(asked), codes=codes)


def _read(line: bytes) -> dict[str, Any] | None:
    """One line; None for one that was torn or damaged."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _age(stamp: str, now: datetime) -> timedelta:
    try:
        return now - datetime.strptime(f"{stamp}+0000", f"{STAMP}%z")
    except ValueError:
        return timedelta.max
