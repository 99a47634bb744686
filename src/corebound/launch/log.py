"""What the processes of a launch wrote."""

from __future__ import annotations

import os
from pathlib import Path

LOG_TAIL_BYTES = 8_192


def tail(file: Path) -> str:
    """The end of a launch's log; empty where there is none."""
    try:
        with file.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - LOG_TAIL_BYTES))
            return stream.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
