"""Workloads whose threads, and whose memory, are on nodes that a test knows."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

block = bytearray()


def setup(*, told: str) -> Callable[[], None]:
    block.extend(bytes(16 << 20))

    def step() -> None:
        threads = [threading.Thread(target=lambda: sum(range(20_000))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seen = {"cpus": sorted(os.sched_getaffinity(0)), "pages": anonymous_pages()}
        with Path(told).open("a") as stream:
            stream.write(json.dumps(seen) + "\n")

    return step


def counts() -> Callable[[], object]:
    """Computes on one thread, without a pause."""
    return lambda: sum(range(200_000))


def wanders(*, seconds: float) -> Callable[[], None]:
    """Computes on one node, then on the other, where it may run on both; else a moment only."""
    allowed = os.sched_getaffinity(0)

    def compute(until_s: float) -> None:
        while time.monotonic() < until_s:
            sum(range(10_000))

    def step() -> None:
        if not {0, 4} <= allowed:
            compute(time.monotonic() + seconds / 20)
            return
        for cpu in (0, 4):
            os.sched_setaffinity(0, {cpu})
            compute(time.monotonic() + seconds)
        os.sched_setaffinity(0, allowed)

    return step


def anonymous_pages() -> dict[str, int]:
    """Pages by node; those of files stay where they were first read, so they prove nothing."""
    pages: Counter[str] = Counter()
    for line in Path("/proc/self/numa_maps").read_text().splitlines():
        if "file=" not in line:
            for node, count in re.findall(r"\bN(\d+)=(\d+)", line):
                pages[node] += int(count)
    return dict(pages)
