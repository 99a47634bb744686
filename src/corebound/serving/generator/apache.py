"""Sends the load with ApacheBench (ab): builds its command line and parses its output."""

import math
import re
import resource
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corebound.errors import HostError, LaunchError
from corebound.scenario.traffic import Answered, GeneratorOrder, Warmed
from corebound.serving.generator.driver import clock_ns
from corebound.stats import latency

MISSING_FIX = (
    "Install it (Debian, Ubuntu: `apt-get install apache2-utils`), or remove `client: ab`."
)


def argv(order: GeneratorOrder, *, requests: int, percentiles: str, times: str) -> tuple[str, ...]:
    """The command line of ab.

    Args:
        order: What to send, in a closed loop.
        requests: The number of requests.
        percentiles: The file that ab writes percentiles to.
        times: The file that ab writes every request's time to.
    """
    traffic = order.traffic
    # -k: reuse connections; -r: continue after a reset; -l: allow answers of different lengths;
    # -s: the timeout, because the default of 30 s is too short for a cold server.
    keep = ("-k",) if order.keeps_connections else ()
    switches = (*keep, "-r", "-l", "-q", "-s", str(math.ceil(traffic.timeout_s)))
    # ab refuses a concurrency above the number of requests.
    amounts = ("-c", str(min(traffic.concurrency or 1, requests)), "-n", str(requests))
    files = ("-e", percentiles, "-g", times)
    url = f"http://{order.host}:{order.port}{order.path}"
    headers = (word for name, value in order.headers.items() for word in ("-H", f"{name}: {value}"))
    return ("ab", *switches, *amounts, *_body(order), *headers, *files, url)


def _body(order: GeneratorOrder) -> tuple[str, ...]:
    if not order.body_files:
        return () if order.method == "GET" else ("-m", order.method)
    kind = ("-T", order.content_type) if order.content_type is not None else ()
    (body_file,) = order.body_files  # ab has one for all requests
    if order.method in {"POST", "PUT"}:
        return ("-p" if order.method == "POST" else "-u", body_file, *kind)
    return ("-p", body_file, "-m", order.method, *kind)


def warmed(output: str, *, requests: int) -> Warmed:
    """The results of the warm-up requests that ab sent.

    Raises:
        LaunchError: ab did not finish.
    """
    errors = _errors(output, requests)
    return Warmed(ok=requests - sum(errors.values()), errors=errors)


def answered(
    output: str,
    percentiles: str,
    times: str,
    *,
    order: GeneratorOrder,
    began_ns: int,
    cpu_ns: int,
    wall_ns: int,
) -> Answered:
    """The results of the measured requests that ab sent.

    ab includes failed requests in its averages and does not report which ones failed, so the
    latencies are those of all requests. ab does not count a connection that the server closes
    without sending anything as a failure.

    Args:
        percentiles: Its `-e` file: milliseconds with microsecond resolution, for each percent.
        times: Its `-g` file: one line per request, in whole milliseconds.
        order: What ab was ordered to send.
        began_ns: When ab was started, on the host's monotonic clock.
        cpu_ns: The CPU time of ab.
        wall_ns: How long ab ran.

    Raises:
        LaunchError: ab did not finish, or its output has an unexpected format.
    """
    requests = order.traffic.requests
    errors = _errors(output, requests)
    try:
        latencies_ms = _latencies_ms(percentiles, times)
        duration_s = float(_search(r"Time taken for tests:\s+([\d.]+) seconds", output) or "")
    except (ValueError, IndexError) as error:
        raise _unusable(f"cannot parse its output ({error})") from error
    if len(latencies_ms) != requests:
        raise _unusable(f"it reported {len(latencies_ms)} times for {requests} requests")
    connections = min(order.traffic.concurrency or 1, requests)
    reused = int(_search(r"Keep-Alive requests:\s+(\d+)", output) or 0)
    return Answered(
        began_ns=began_ns,
        duration_ns=round(duration_s * 1e9),
        ok=requests - sum(errors.values()),
        errors=errors,
        latencies=latency.encode(latencies_ms * 1e6),
        lateness=None,
        waited=0,
        window_ns=0,
        windows=(),
        cpu_ns=cpu_ns,
        wall_ns=wall_ns,
        connections=connections,
        # Each request without keep-alive needed its own connection.
        opened=max(connections, requests - reused),
    )


def _latencies_ms(percentiles: str, times: str) -> NDArray[np.float64]:
    """The time of each request, in ascending order.

    The values of `-g` are rounded to milliseconds. Those of `-e` are exact, but there are only
    a hundred ranks. Times between these ranks are interpolated linearly, within the bounds that
    the rounded values allow.
    """
    rounded = np.sort([float(line.split("\t")[4]) for line in times.splitlines()[1:]])
    rows = [line.split(",") for line in percentiles.splitlines()[1:]]
    ranks = np.array([float(share) for share, _ in rows]) / 100 * len(rounded)
    exact = np.interp(np.arange(len(rounded)), ranks, [float(value) for _, value in rows])
    return np.maximum(np.clip(exact, rounded - 0.5, rounded + 0.5), 0.0)


def _errors(output: str, requests: int) -> dict[str, int]:
    complete = _search(r"Complete requests:\s+(\d+)", output)
    if complete is None:
        raise _unusable("it printed no result")
    kinds = {
        "connect": _search(r"\(Connect: (\d+)", output),
        "receive": _search(r"Receive: (\d+)", output),
        "exception": _search(r"Exceptions: (\d+)", output),
        # ab does not count these as failed requests.
        "status": _search(r"Non-2xx responses:\s+(\d+)", output),
        "not sent": str(requests - int(complete)),
    }
    counts = {kind: int(count or 0) for kind, count in kinds.items()}
    # ab may count one request under two kinds of failure, so limit the sum to all requests.
    remaining = requests
    for kind, count in counts.items():
        counts[kind] = min(count, remaining)
        remaining -= counts[kind]
    return {kind: count for kind, count in counts.items() if count}


def _search(pattern: str, output: str) -> str | None:
    match = re.search(pattern, output)
    return match[1] if match else None


def _unusable(what: str) -> LaunchError:
    return LaunchError(
        what=f"{what}.",
        where="ab",
        fix="Check that the server keeps up, or remove `client: ab`: ab stops after a few errors.",
    )


def warm_up(order: GeneratorOrder) -> Warmed:
    """Send the warm-up requests, if any are requested.

    Raises:
        CoreboundError: ab is not installed, or has failed.
    """
    requests = order.traffic.warmup_requests
    if not requests:
        return Warmed(ok=0, errors={})
    return warmed(_run(order, requests)[0], requests=requests)


def measure(order: GeneratorOrder) -> Answered:
    """Send the measured requests.

    Raises:
        CoreboundError: ab is not installed, or has failed.
    """
    began_ns, cpu_ns = clock_ns(), _children_cpu_ns()
    return answered(
        *_run(order, order.traffic.requests),
        order=order,
        began_ns=began_ns,
        cpu_ns=_children_cpu_ns() - cpu_ns,
        wall_ns=clock_ns() - began_ns,
    )


def _run(order: GeneratorOrder, requests: int) -> tuple[str, str, str]:
    """Run ab; returns its output and the contents of its percentiles and times files."""
    with tempfile.TemporaryDirectory(prefix="ab-") as folder:
        percentiles, times = Path(folder, "percentiles.csv"), Path(folder, "times.tsv")
        words = argv(order, requests=requests, percentiles=str(percentiles), times=str(times))
        try:
            process = subprocess.run(words, capture_output=True, check=False, text=True)
        except FileNotFoundError as error:
            fix = MISSING_FIX
            raise HostError(what="ApacheBench is not installed.", where="ab", fix=fix) from error
        if process.returncode or not percentiles.exists() or not times.exists():
            said = (process.stderr.strip().splitlines() or ["no message"])[-1]
            raise _unusable(f"it ended with exit code {process.returncode} ({said})")
        return process.stdout, percentiles.read_text(), times.read_text()


def _children_cpu_ns() -> int:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((usage.ru_utime + usage.ru_stime) * 1e9)
