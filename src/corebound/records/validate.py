"""Check that records are consistent before anything is computed from them.

A file may come from anywhere: edited by hand, merged incorrectly, or written by a faulty tool.
Decoding checks types and the bounds of single numbers (`bounds`). This module checks rules
that involve several fields. Each function raises ValueError with the problem.
"""

import math
import re
import zlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from importlib import import_module
from itertools import chain, pairwise

import numpy as np

from corebound.machine.topology import Topology
from corebound.records.calibration import Calibration
from corebound.records.decisions import Confirmation
from corebound.records.history import HistoryPoints, Series
from corebound.records.launch_record import ImportedProfile, Launch, OperatorProfile, Served, Worker
from corebound.records.run_record import Commit, Run
from corebound.scenario.cell import Cell

# Far longer than any id, key or name that corebound writes.
_LONGEST_NAME = 10_000
_LONGEST_HASH = 100
# The lowest value, in microseconds, and the significant digits, as in `stats.latency`.
_HISTOGRAM = (1, 3)
# A larger margin makes no sense, and leaves the range of a double.
MOST_MARGIN = 1e6
_MOST = 1 << 60
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII)


def run(record: Run) -> None:
    """Check the first line of a file of records."""
    moment("started_at", record.started_at)
    _name("id", record.id)
    _name("host.id", record.host.id)
    if record.commit is not None:
        _commit(record.commit)
    for lock in record.environments:
        if lock.commit is not None:
            _commit(lock.commit)
    _distinct("environments", (lock.name for lock in record.environments))
    _topology(record.host.topology)
    for name, value in record.labels.items():
        _name("labels", name)
        _name(f"labels.{name[:80]}", value)
    for duplicates in record.duplicates.values():
        if chained := duplicates.keys() & set(duplicates.values()):
            raise ValueError(f"`duplicates` has {min(chained)} both as measured and as duplicate")


def launch(record: Launch) -> None:
    """Check a launch."""
    moment("started_at", record.started_at)
    _name("id", record.id)
    _cell(record.cell)
    slots = 0 if record.placement is None else len(record.placement.slots)
    if record.placement is not None and not slots:
        raise ValueError("`placement.slots` is empty")
    for worker in record.workers:
        _worker(worker, slots)
    _distinct("workers", (str(worker.slot) for worker in record.workers))
    if record.host is not None:
        windows = record.host.windows
        _rising("host.windows", [at for window in windows for at in (window.from_ms, window.to_ms)])
    if record.served is not None:
        _served(record.served)
    if record.status == "ok":
        _ok(record)


def series(record: Series) -> None:
    """Check a series with its points."""
    if not 0 < record.margin <= MOST_MARGIN:
        raise ValueError(f"the margin of {record.id} is not between 0 and {MOST_MARGIN:g}")
    if not 0 < record.confidence < 1:
        raise ValueError(f"the confidence of {record.id} is not between 0 and 1")
    _points(record.points, record.id)


def calibration(record: Calibration) -> None:
    """Check a calibration."""
    moment("at", record.at)
    _interval(record.interval)
    if not record.noise:
        raise ValueError("`noise` is empty")


def confirmation(record: Confirmation) -> None:
    """Check a confirmation."""
    moment("at", record.at)
    for name in ("after", "by"):
        moment(name, getattr(record.location, name))
    if record.interval is not None:
        _interval(record.interval)


def imported_profile(record: ImportedProfile) -> None:
    """Check an imported profile."""
    _profile(record.profile)


def _ok(launch: Launch) -> None:
    """Check the fields that only a launch that contributes to a statistic must have."""
    if launch.placement is None:
        raise ValueError("status `ok` without a placement")
    if launch.served is not None:
        if not launch.served.answered.ok or not launch.served.answered.duration_ns:
            raise ValueError("status `ok` without answered requests, or with a duration of 0")
        return
    if not launch.workers:
        raise ValueError("status `ok`, but `workers` is empty")
    if launch.kind == "profile":
        if launch.workers[0].profile is None:
            raise ValueError("a profile with status `ok`, but its worker has no `profile`")
        return
    for worker in launch.workers:
        if len(worker.cpu_ns) not in {0, len(worker.wall_ns)}:
            raise ValueError("`cpu_ns` and `wall_ns` differ in length")
        if not worker.wall_ns or sum(map(bool, worker.wall_ns)) * 2 < len(worker.wall_ns):
            raise ValueError("status `ok`, but a worker has no iterations, or their duration is 0")
        _reported(worker, len(launch.cell.metrics))


def _reported(worker: Worker, metrics: int) -> None:
    if metrics and len(worker.metrics) != len(worker.wall_ns):
        raise ValueError("`metrics` and `wall_ns` differ in length")
    if any(len(each) != metrics or not all(each) for each in worker.metrics):
        raise ValueError("an iteration has no value of a metric")


def _worker(worker: Worker, slots: int) -> None:
    if slots and worker.slot >= slots:
        raise ValueError(f"`slot` {worker.slot} is not one of the {slots} slots")
    iterations = len(worker.wall_ns)
    # The first iteration belongs to no time slice.
    if worker.time_slices and sum(
        time_slice.iterations for time_slice in worker.time_slices
    ) != max(iterations - 1, 0):
        raise ValueError("`stints` do not contain the iterations of `wall_ns` after the first")
    if any(not time_slice.iterations for time_slice in worker.time_slices):
        raise ValueError("a stint has no iteration")
    if any(not each.first <= each.last < iterations for each in worker.disturbed):
        raise ValueError("`disturbed` names iterations that `wall_ns` does not have")
    for thread in worker.threads:
        _rising("stays", [at for stay in thread.stays for at in (stay.from_ms, stay.to_ms)])
    if worker.profile is not None:
        _profile(worker.profile)


def _profile(profile: OperatorProfile) -> None:
    if profile.iterations == 0:
        raise ValueError("0 iterations were profiled")
    for operator in profile.operators:
        times_ns = (operator.total_ns, operator.quiet_ns, operator.min_ns, operator.max_ns)
        # Operators arrive over the wire, where types have no bounds.
        if any(ns is not None and not 0 <= ns <= _MOST for ns in times_ns):
            raise ValueError(f"a time of operator `{operator.type[:80]}` is out of range")
        if not 0 <= operator.calls <= _MOST:
            raise ValueError(f"`calls` of operator `{operator.type[:80]}` is out of range")


def _served(served: Served) -> None:
    answered = served.answered
    if answered.windows and not answered.window_ns:
        raise ValueError("there are windows, but `window_ns` is 0")
    for histogram in (answered.latencies, answered.lateness):
        if histogram is not None:
            _histogram(histogram, at_least=1 if histogram is answered.latencies else 0)
    if answered.streamed is not None:
        _histogram(answered.streamed.first_token, at_least=1)
        _histogram(answered.streamed.per_token, at_least=0)


def _histogram(text: str, *, at_least: int) -> None:
    # Slow to import, and needed for servers only.
    hdr = import_module("hdrh.histogram").HdrHistogram
    codec = import_module("hdrh.codec")
    try:
        histogram = hdr.decode(text.encode())
        count = histogram.get_total_count()
    except (
        *(codec.HdrCookieException, codec.HdrLengthException, codec.HdrHistogramSettingsException),
        *(zlib.error, ArithmeticError, AssertionError, LookupError, MemoryError, RuntimeError),
        *(TypeError, ValueError),
    ) as error:
        raise ValueError(f"`latencies` is not an HDR histogram: {error}") from None
    # Other histograms do not merge with those that corebound writes.
    if (histogram.lowest_trackable_value, histogram.significant_figures) != _HISTOGRAM:
        raise ValueError("`latencies` has an unexpected precision")
    if count < at_least:
        raise ValueError("`latencies` is an empty histogram")


def _cell(cell: Cell) -> None:
    if len(cell.scenario) > _LONGEST_NAME or len(cell.key) > _LONGEST_NAME:
        raise ValueError("the cell's name is too long")
    _distinct("cell.axes", (name for name, _ in cell.axes))


def _topology(topology: Topology) -> None:
    if not topology.cpus:
        raise ValueError("the host has no CPU")
    _distinct("topology.cpus", (str(cpu.id) for cpu in topology.cpus))
    _distinct("topology.nodes", (str(node.id) for node in topology.nodes))
    cpu_ids = {cpu.id for cpu in topology.cpus}
    if any(cpu.cache is not None and cpu.cache >= len(topology.caches) for cpu in topology.cpus):
        raise ValueError("a CPU refers to a cache that the topology does not contain")
    node_ids = {node.id for node in topology.nodes}
    if any(cpu.node is not None and cpu.node not in node_ids for cpu in topology.cpus):
        raise ValueError("a CPU refers to a node that the topology does not contain")
    referenced = (
        *(node.cpus for node in topology.nodes),
        *(cache.cpus for cache in topology.caches),
    )
    if not all(map(cpu_ids.issuperset, referenced)):
        raise ValueError("a node or a cache refers to a CPU that the topology does not contain")


def _commit(commit: Commit) -> None:
    # It is passed to git, which reads an argument that begins with a dash as an option.
    if not (commit.sha.isascii() and commit.sha.isalnum() and len(commit.sha) <= _LONGEST_HASH):
        raise ValueError(f"`sha` is not a commit hash: {commit.sha[:40]!r}")


def _points(points: HistoryPoints, name: str) -> None:
    if not len(points):
        raise ValueError(f"{name} has no points")
    values, lows, highs = (
        np.frombuffer(column, np.float64) for column in (points.values, points.lows, points.highs)
    )
    # The upper end of an interval may be infinite: two launches give hardly any information.
    for column in (values, lows):
        if not np.all(np.isnan(column) | ((column > 0) & (column < math.inf))):
            raise ValueError(f"{name} has a value that is not above 0 and finite")
    if not np.all((lows <= highs) | (np.isnan(lows) & np.isnan(highs))):
        raise ValueError(f"{name} has an interval whose ends are out of order")
    launches = np.fromiter(chain.from_iterable(points.launches), np.float64)
    if not np.all((launches >= 0) & (launches < math.inf)):
        raise ValueError(f"{name} has a launch whose value is negative or not finite")


def _interval(ends: tuple[float, float]) -> None:
    if not 0 < ends[0] <= ends[1] < math.inf:
        raise ValueError("the ends of `interval` are out of order")


def moment(name: str, text: str) -> None:
    """Check a moment: ISO 8601 with seconds and a zone, in the form that pages take apart."""
    try:
        if _MOMENT.fullmatch(text) and datetime.fromisoformat(text).tzinfo is not None:
            return
    except ValueError:
        pass
    raise ValueError(f"`{name}` is not a time with a time zone: {text[:40]!r}")


def _name(name: str, text: str) -> None:
    if not text or len(text) > _LONGEST_NAME:
        raise ValueError(f"`{name}` is empty" if not text else f"`{name}` is too long")


def _rising(name: str, moments: Sequence[int]) -> None:
    if any(before > after for before, after in pairwise(moments)):
        raise ValueError(f"the times in `{name}` are out of order")


def _distinct(name: str, keys: Iterable[str]) -> None:
    listed = [*keys]
    if len(set(listed)) < len(listed):
        raise ValueError(f"two of `{name}` are the same")
