"""Corebound's load generator beside ab and wrk: one running server, the same load, in turns.

`python -m benchmarks.load_generators http://127.0.0.1:8000/` prints the medians of the turns.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from corebound.scenario import traffic
from corebound.scenario.traffic import Answered, GeneratorOrder, Traffic
from corebound.stats import latency
from corebound.worker import protocol

TURNS = 5
REQUESTS = 2000
WARM_UP = 200
DURATION_S = 5
# Its orders come in over descriptor 3, and its messages go out over 4.
_GENERATOR = ("sh", "-c", 'exec "$@" 3<&0 4>&1 1>&2', "sh")
_UNITS_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


class Figures(Struct, frozen=True, kw_only=True):
    """What one client measured: requests per second, and percentiles in milliseconds."""

    rate_per_s: float
    p50_ms: float
    p99_ms: float


def corebound(url: str, concurrency: int) -> Figures:
    """A closed loop of corebound's generator."""
    address = urlsplit(url)
    order = GeneratorOrder(
        traffic=Traffic(
            shape="closed", requests=REQUESTS, warmup_requests=WARM_UP, concurrency=concurrency
        ),
        host=address.hostname or "",
        port=address.port or 80,
        path=address.path or "/",
        method="GET",
    )
    command = (*_GENERATOR, sys.executable, "-m", "corebound.serving.generator")
    sent = traffic.encode(order) + protocol.GO
    done = subprocess.run(command, input=sent, stdout=subprocess.PIPE, check=True)
    answered = traffic.decode_message(done.stdout.splitlines()[-1])
    assert isinstance(answered, Answered)
    assert not answered.errors, answered.errors
    found = latency.percentiles(answered.latencies)
    assert found is not None
    rate_per_s = answered.ok * 1e9 / answered.duration_ns
    return Figures(rate_per_s=rate_per_s, p50_ms=found.p50_ns / 1e6, p99_ms=found.p99_ns / 1e6)


def ab(url: str, concurrency: int) -> Figures:
    """ApacheBench, which has percentiles to the microsecond in its table."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "table.csv")
        counts = ("-n", str(REQUESTS), "-c", str(concurrency))
        printed = _printed("ab", "-k", "-q", *counts, "-e", str(table), url)
        rows = dict(line.split(",") for line in table.read_text().splitlines()[1:])
    rate_per_s = _number(r"Requests per second: +([\d.]+)", printed)
    return Figures(rate_per_s=rate_per_s, p50_ms=float(rows["50"]), p99_ms=float(rows["99"]))


def wrk(url: str, concurrency: int) -> Figures:
    """`wrk` with one thread, which sends for a time, not a number of requests."""
    printed = _printed("wrk", "-t1", f"-c{concurrency}", f"-d{DURATION_S}s", "--latency", url)

    def percentile_ms(share: int) -> float:
        found = re.search(rf"{share}% +([\d.]+)(us|ms|s)", printed)
        assert found is not None, printed
        return float(found[1]) * _UNITS_MS[found[2]]

    rate_per_s = _number(r"Requests/sec: +([\d.]+)", printed)
    return Figures(rate_per_s=rate_per_s, p50_ms=percentile_ms(50), p99_ms=percentile_ms(99))


def _printed(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found is not None, text
    return float(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--concurrency", type=int, default=4)
    given = parser.parse_args()
    clients: tuple[Callable[[str, int], Figures], ...] = (corebound, ab, wrk)
    results: dict[str, list[Figures]] = {client.__name__: [] for client in clients}
    for turn in range(TURNS):
        for client in clients[turn % 3 :] + clients[: turn % 3]:
            results[client.__name__].append(client(given.url, given.concurrency))
    for name, figures in results.items():
        for what in Figures.__struct_fields__:
            low, *_, high = turns = sorted(getattr(one, what) for one in figures)
            print(
                f"{name:9}  {what:10}  {statistics.median(turns):8.4g}  ({low:.3g} to {high:.3g})"
            )


if __name__ == "__main__":
    main()
