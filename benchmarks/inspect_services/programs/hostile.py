"""A program whose name, arguments and variables try to break what prints them."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

ENVIRONMENT = {b"OMP_NUM_THREADS": b"2\x1b[31m\nFORGED: healthy\xff"}
ARGUMENTS = [b"\x1b]0;title\x07", b"new\nFORGED: healthy", b"\xff\xfe", b"[bold]markup[/bold]"]

if __name__ == "__main__":
    if ENVIRONMENT.keys() - os.environb.keys():
        command = [sys.executable.encode(), __file__.encode(), *ARGUMENTS]
        os.execve(command[0], command, os.environb | ENVIRONMENT)  # noqa: S606  # a program of the catalogue
    Path("/proc/self/comm").write_bytes(b"a) R 1\n\x1b[2J\xff")
    Path("ready.count").write_bytes(bytes([9, *[0] * 7]))
    while True:
        sum(range(10_000))
        time.sleep(0.001)
