"""What `corebound inspect` costs: its CPU time, as the kernel reports it when it has ended.

A quarter of the threads that it watches wakes up ten times per second. The start of the command is
measured on a program that sleeps, for a second, and subtracted.
"""

from __future__ import annotations

import statistics

from benchmarks.inspect_services.inspector import ask
from benchmarks.inspect_services.service import Running, Service, started

_SECONDS, _REPEATS = 30, 3


def run(corebound: str) -> None:
    """Print the medians: of the start, and of watching as a share of one CPU."""
    with started(Service(name="sleep", command=("sleep", "1000"), is_counted=False)) as running:
        start_s = _cpu_s(corebound, running, seconds=1)
    print(f"start and report: {start_s:.2f} s of CPU time, of {_REPEATS} runs")
    print(f"{'threads':>8}{'of one CPU':>12}{'with the start':>16}  (runs of {_SECONDS} s)")
    for threads in (200, 5_000):
        service = Service(name="threads", command=("{pool}", "sleep", str(threads), "{folder}"))
        with started(service) as running:
            cpu_s = _cpu_s(corebound, running, seconds=_SECONDS)
        steady, whole = (cpu_s - start_s) / (_SECONDS - 1), cpu_s / _SECONDS
        print(f"{threads:>8,}{steady:>12.2%}{whole:>16.2%}", flush=True)


def _cpu_s(corebound: str, running: Running, *, seconds: int) -> float:
    """The CPU time of the whole command, of its children too (wait4)."""
    arguments = (str(running.pid), "--seconds", str(seconds), "--json")
    return statistics.median(ask((corebound,), arguments).cpu_s for _ in range(_REPEATS))
