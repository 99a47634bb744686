"""What `corebound inspect` costs: its CPU time while it watches 200 and 5,000 threads."""

from __future__ import annotations

from benchmarks.inspect_services.inspector import ask
from benchmarks.inspect_services.service import Service, started

_SHORT_S, _LONG_S = 4, 16


def run(corebound: str) -> None:
    """Print the cost, of a start and in the steady state.

    A quarter of the threads wakes up ten times per second.
    """
    print(f"{'threads':>8}{'of one CPU, steady':>20}{'start and report':>18}")
    for threads in (200, 5_000):
        service = Service(name="threads", command=("{pool}", "sleep", str(threads), "{folder}"))
        with started(service) as running:
            short, long = (
                ask((corebound,), (str(running.pid), "--seconds", str(seconds), "--json"))
                for seconds in (_SHORT_S, _LONG_S)
            )
        steady = (long.cpu_s - short.cpu_s) / (_LONG_S - _SHORT_S)
        once_s = short.cpu_s - steady * _SHORT_S
        print(
            f"{threads:>8,}{steady:>19.2%} {once_s:>15.2f} s  (itself: {long.document.get('cost')})"
        )
