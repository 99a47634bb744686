"""Read Ascend profiles: the tables and traces that `msprof --export` writes.

Source: MindStudio, "Profile data file references" (op_summary, op_statistic, step_trace,
aicpu). Column names differ between versions of CANN. All known names are accepted, with or
without their unit in brackets. A time without a named unit is in microseconds, as in every
version of these tables.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from corebound.exchange.profiles.chrome import Event, times_ns
from corebound.exchange.profiles.csv_table import Row, Table
from corebound.exchange.profiles.parts import Iterations, Part, Sum, Sums, Timeline, collect_spans
from corebound.exchange.reading import Unreadable
from corebound.worker.operator_table import side_by_side

SUMMARY = "Ascend msprof, op_summary"
STATISTIC = "Ascend msprof, op_statistic"
AICPU = "Ascend msprof, aicpu"
STEPS = "Ascend msprof, step_trace"

_DEVICE = "device id"
# msprof's name for a column, then the name in kernel_details.csv of the framework profilers.
_TYPE = ("op type", "type")
_START = ("task start time", "start time")
_DURATION = ("task duration", "duration")


def read_table(table: Table) -> tuple[Part, ...] | None:
    """Read the parts of a table, one for each device; None if msprof did not write it.

    Raises:
        Unreadable: The table is truncated, or a value is invalid.
    """
    if table.has("op type", "core type", "count", "total time"):
        return tuple(_statistic(table))
    if table.has("node", "total time") and table.first(("task time", "dispatch time")):
        return tuple(_aicpu(table))
    if table.has("iteration id", "iteration end", "iteration time"):
        return tuple(_steps(table))
    named = table.has("op name", "op type") or table.has("name", "type", "accelerator core")
    if named and table.first(_START) and table.first(_DURATION):
        return tuple(_summary(table))
    return None


def _summary(table: Table) -> Iterator[Timeline]:
    """Read op_summary: one row for each call, with its start time on the device.

    A call's time is its Task Duration: device time, without waiting.
    """
    type_name, start, duration = (table.first(names) for names in (_TYPE, _START, _DURATION))
    if type_name is None or start is None or duration is None:
        raise ValueError("the columns were looked for before")
    calls: dict[str | None, list[tuple[int, int, str]]] = defaultdict(list)
    for row in table.rows():
        if row.optional(start) is None or row.optional(duration) is None:
            continue
        begin_ns = row.time_ns(start)
        end_ns = begin_ns + max(0, row.time_ns(duration))
        # Communication and tasks of the runtime itself have a name but no type.
        type_ = row.optional(type_name) or row.optional("task type") or "N/A"
        calls[row.optional(_DEVICE)].append((begin_ns, end_ns, type_))
    if not calls:
        raise Unreadable(
            "no row has a start and a duration.",
            "Collect with --task-time=on, and export again.",
        )
    for device, device_calls in calls.items():
        yield Timeline(
            source=SUMMARY, spans=collect_spans(side_by_side(device_calls)), device=device
        )


def _statistic(table: Table) -> Iterator[Sums]:
    """Read op_statistic: one row for each operator type and kind of core, as sums.

    The table has neither iterations nor start times, so steps cannot be derived from it.
    """
    low, high = (table.first((f"{extreme} time", extreme)) for extreme in ("min", "max"))
    rows: dict[str | None, list[Sum]] = defaultdict(list)
    for row in table.rows():
        rows[row.optional(_DEVICE)].append(
            Sum(
                type=row.text("op type"),
                calls=row.count("count"),
                total_ns=row.time_ns("total time"),
                min_ns=row.optional_time_ns(low),
                max_ns=row.optional_time_ns(high),
            )
        )
    for device, device_rows in rows.items():
        yield Sums(source=STATISTIC, rows=tuple(device_rows), rank=1, device=device)


def _aicpu(table: Table) -> Iterator[Sums]:
    """Read aicpu: one row for each call on the AI CPUs, by graph node; nodes have no type.

    A call's time is Total_time: from start to end, dispatch included.
    """
    calls: dict[str | None, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in table.rows():
        calls[row.optional(_DEVICE)][row.text("node")].append(row.time_ns("total time"))
    for device, nodes in calls.items():
        yield Sums(
            source=AICPU,
            rows=tuple(
                Sum(
                    type=node,
                    calls=len(times),
                    total_ns=sum(times),
                    min_ns=min(times),
                    max_ns=max(times),
                )
                for node, times in nodes.items()
            ),
            rank=2,
            device=device,
        )


def _steps(table: Table) -> Iterator[Iterations]:
    """Read step_trace: a row for each iteration; inference has no forward start or backward end."""
    marks: dict[str | None, list[tuple[int, int]]] = defaultdict(list)
    computing: dict[str | None, list[tuple[int, int]]] = defaultdict(list)
    # Rows have an extra pair of columns for each reduction.
    for row in table.rows(ragged=True):
        if row.optional("iteration end") is None or row.optional("iteration time") is None:
            continue
        device = row.optional(_DEVICE)
        end_ns = row.time_ns("iteration end")
        marks[device].append((end_ns - max(0, row.time_ns("iteration time")), end_ns))
        if (span := _computing(row)) is not None:
            computing[device].append(span)
    if not marks:
        raise Unreadable("no row has an end and a time.", "Export the profile again.")
    for device, device_marks in marks.items():
        yield Iterations(
            source=STEPS,
            marks=tuple(sorted(device_marks)),
            computing=tuple(sorted(computing[device])),
            device=device,
        )


def _computing(row: Row) -> tuple[int, int] | None:
    begin_ns, end_ns = (
        row.optional_time_ns(name if name in row.table.columns else None)
        for name in ("fp start", "bp end")
    )
    return None if begin_ns is None or end_ns is None else (begin_ns, end_ns)


def matches(event: Event) -> bool:
    """Whether an event can only come from step_trace_*.json."""
    return event.get("cat") == "Iteration Time"


def read(events: Iterable[Event]) -> Iterations:
    """Read step_trace_*.json: iterations with their forward and backward passes.

    Raises:
        Unreadable: A time is invalid, or no iteration is complete.
    """
    by_category: dict[str, list[tuple[int, int]]] = {"Iteration Time": [], "FP_BP Time": []}
    for event in events:
        category = str(event.get("cat"))
        if category in by_category and event["ph"] == "X":
            by_category[category].append(times_ns(event))
    if not by_category["Iteration Time"]:
        raise Unreadable("the file contains no iteration.", "Export the profile again.")
    return Iterations(
        source=STEPS,
        marks=tuple(sorted(by_category["Iteration Time"])),
        computing=tuple(sorted(by_category["FP_BP Time"])),
        # The CSV table beside it names the device and rounds less, so it takes precedence.
        rank=1,
    )
