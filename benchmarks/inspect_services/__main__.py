"""How often `corebound inspect` is right, what it costs, and what its advice gains.

Run as root from the root of the repository, on a quiet host with cgroup v1:

    python -m benchmarks.inspect_services planted healthy hostile cost --results results.jsonl
    python -m benchmarks.inspect_services table --results results.jsonl

`planted` starts each service with its fault, then with its cure. `healthy` starts each service
with nothing wrong, inspects it, and again beside a busy program. `two-sockets` boots an emulated
machine. The environments of the services must have been made (`corebound environment make NAME`);
services without theirs are skipped.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.inspect_services import catalogue, cost, hostile, two_sockets
from benchmarks.inspect_services.inspector import Observation, observe
from benchmarks.inspect_services.service import NotStarted, Service, started
from benchmarks.inspect_services.tables import print_tables

PARTS = ("planted", "healthy", "two-sockets", "hostile", "cost", "table")


def planted(service: Service, corebound: str, seconds: float) -> Iterator[Observation]:
    """The service with its fault, then with its cure."""
    variants = {"planted": service}
    if service.cure:
        healed = msgspec.structs.replace(service, **service.cure)
        also = healed.also | {"throttled"} if healed.quota else healed.also
        variants["cured"] = msgspec.structs.replace(healed, also=also)
    for variant, one in variants.items():
        with started(one) as running:
            yield observe(corebound, running, seconds=seconds, variant=variant)


def healthy(service: Service, corebound: str, seconds: float) -> Iterator[Observation]:
    """The service alone, then beside a busy program."""
    with started(service) as running:
        yield observe(corebound, running, seconds=seconds, variant="quiet")
        running.add_neighbours(1)
        yield observe(corebound, running, seconds=seconds, variant="loaded")


def observations(
    part: str, patterns: Sequence[str], corebound: str, seconds: float
) -> Iterator[Observation]:
    """Observe the services of a part whose names match."""
    if part == "two-sockets":
        yield from two_sockets.observations(Path(corebound), seconds=seconds)
        return
    services = catalogue.PLANTED if part == "planted" else catalogue.HEALTHY
    for service in services:
        if not any(fnmatch.fnmatch(service.name, pattern) for pattern in patterns):
            continue
        problem = service.missing()
        if problem is None:
            try:
                yield from (planted if part == "planted" else healthy)(service, corebound, seconds)
            except NotStarted as error:
                problem = str(error)
        if problem is not None:
            yield Observation(name=service.name, variant=part, problem=problem)


def main() -> None:
    """Run the parts, append what was seen to the results, and print it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.inspect_services", description=__doc__
    )
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--results", type=Path, default=Path("inspect-services.jsonl"))
    parser.add_argument("--corebound", default=str(Path(sys.executable).with_name("corebound")))
    options = parser.parse_args()
    # Services end with this program, and inherit its priority.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    for part in options.parts:
        if part == "hostile":
            hostile.run(options.corebound, options.only)
        elif part == "cost":
            cost.run(options.corebound)
        elif part != "table":
            for seen in observations(part, options.only, options.corebound, options.seconds):
                with options.results.open("ab") as file:
                    file.write(msgspec.json.encode(seen) + b"\n")
                found = " ".join(seen.rules) or seen.problem or "-"
                print(f"{seen.variant:8} {seen.name:45} {found}", flush=True)
    if options.results.exists():
        print_tables(options.results)


if __name__ == "__main__":
    main()
