"""The journal of a nightly run: one line as each step begins and ends, written to disk at once.

The journal of an interrupted nightly run has no end line; the next invocation resumes that run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from corebound.errors import report_os_errors
from corebound.records import atomic_write

NAME = "journal.jsonl"
SCHEMA = 1
# The time format at the start of record file names; it selects this nightly run's files.
STAMP = "%Y%m%dT%H%M%SZ"
# A nightly run older than this is not resumed: there are new commits to measure.
LONGEST = timedelta(hours=12)


class Journal(Struct, frozen=True, kw_only=True):
    """The journal of one nightly run.

    Attributes:
        folder: The folder of the journal and the logs of the steps.
        asked: The values that identify the request; other values mean another nightly run.
        codes: The exit codes of the steps that have ended.
    """

    folder: Path
    asked: tuple[str, ...]
    codes: dict[str, int]

    @property
    def stamp(self) -> str:
        """The start time, as in file names."""
        return self.folder.name

    def began(self, step: str, at: str) -> None:
        """Record that a step begins."""
        _append(self.folder, {"step": step, "event": "began", "at": at})

    def ended(self, step: str, code: int, at: str) -> Self:
        """Record a step's exit code."""
        _append(self.folder, {"step": step, "event": "ended", "code": code, "at": at})
        self.codes[step] = code
        return self

    def over(self, code: int, at: str) -> None:
        """Record that the nightly run has ended and must not be resumed."""
        _append(self.folder, {"event": "over", "code": code, "at": at})


def begin(folder: Path, asked: Sequence[str], now: datetime) -> Journal:
    """Start the journal of a new nightly run.

    Args:
        folder: The folder of all nightly runs.
        asked: The values that identify the request.
        now: The current time in UTC.
    """
    night = folder / now.strftime(STAMP)
    while night.exists():
        now += timedelta(seconds=1)
        night = folder / now.strftime(STAMP)
    with report_os_errors(
        "the night's journal cannot be kept",
        where=night,
        fix="Make that folder writable, or name another with --nights.",
    ):
        atomic_write.make_folder(night)
        _append(night, {"schema": SCHEMA, "asked": list(asked)})
        atomic_write.sync_folder(night)
    return Journal(folder=night, asked=tuple(asked), codes={})


def _append(folder: Path, line: dict[str, Any]) -> None:
    """Append a line to a journal and flush it to disk."""
    file = folder / NAME
    with (
        report_os_errors(
            "the night's journal cannot be written",
            where=file,
            fix="Make room, and start the night again: it goes on where it was.",
        ),
        file.open("ab") as stream,
    ):
        # A line truncated by a kill stays truncated, on a line of its own.
        if stream.tell() and not file.read_bytes().endswith(b"\n"):
            stream.write(b"\n")
        stream.write(f"{json.dumps(line)}\n".encode())
        stream.flush()
        os.fsync(stream.fileno())


def unfinished(folder: Path, asked: Sequence[str], now: datetime) -> Journal | None:
    """Find the latest nightly run if its request is the same and it can still be resumed."""
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
    """Parse one line; None if it is truncated or damaged."""
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
