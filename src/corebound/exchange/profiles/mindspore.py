"""Read MindSpore profiles of CPU kernels: `trace_view.json` and `cpu_op_type_info_*.csv`.

Both are in a folder named `*_ascend_ms`, whatever the device.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache

from corebound.exchange.profiles.chrome import Event, times_ns
from corebound.exchange.profiles.csv_table import Table
from corebound.exchange.profiles.parts import Sum, Sums, Timeline, collect_spans
from corebound.exchange.reading import label
from corebound.worker.operator_table import side_by_side

TRACE = "MindSpore profiler, CPU trace"
TYPES = "MindSpore profiler, CPU operator types"

_KERNEL = "HostCpuOps"
# The name of a graph's kernel has its place, type and number: `Default/network/MatMul-op7`.
_NUMBER = re.compile(r"-op\d+$")
_MS = 1_000_000
_NEEDED = ("op type", "type occurrences", "total compute time")


def matches(event: Event) -> bool:
    """Whether an event can only come from MindSpore."""
    args = event.get("args")
    return isinstance(args, dict) and (args.get("type") == _KERNEL or args.get("name") == "CPU OP")


def read(events: Iterable[Event]) -> Timeline:
    """Read the kernels of a trace, which does not assign them to iterations.

    Raises:
        Unreadable: A time is invalid, or no kernel ran.
    """
    return Timeline(source=TRACE, spans=collect_spans(side_by_side(_kernels(events))))


def _kernels(events: Iterable[Event]) -> Iterator[tuple[int, int, str]]:
    named = cache(label)
    for event in events:
        if event["ph"] != "X" or not matches(event):
            continue
        type_ = _NUMBER.sub("", str(event.get("name", "")).rpartition("/")[2])
        yield *times_ns(event), named(type_)


def matches_table(table: Table) -> bool:
    """Whether a table lists operator types."""
    return table.has(*_NEEDED)


def read_types(table: Table) -> Sums:
    """Read the table of operator types. Times are in milliseconds, even without a named unit.

    The table lacks the shortest and longest time of a call. The number of iterations is the
    number of occurrences divided by the frequency in a step.

    Raises:
        Unreadable: A row is truncated, or a value is invalid.
    """
    rows = []
    iterations: set[int] = set()
    for row in table.rows():
        calls = row.count("type occurrences")
        if (frequency := row.number_or_none("execution frequency")) and calls:
            iterations.add(round(calls / frequency))
        rows.append(
            Sum(
                type=row.text("op type"),
                calls=calls,
                total_ns=row.time_ns("total compute time", default_ns=_MS),
                min_ns=None,
                max_ns=None,
            )
        )
    return Sums(
        source=TYPES,
        rows=tuple(rows),
        # Types that ran only in some iterations give another number.
        iterations=iterations.pop() if len(iterations) == 1 else None,
    )
