"""What disturbs a launch for real: a program that computes beside it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def a_busy_process(cpu: int) -> Iterator[None]:
    """Something that is not of corebound, and computes on one CPU all the time."""
    command = ("taskset", "-c", str(cpu), sys.executable, "-c", "while True: pass")
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()
