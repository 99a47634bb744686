"""Read TensorFlow's `trace.json.gz` from its profiler: the operators on the host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from corebound.exchange.profiles.chrome import Event, times_ns
from corebound.exchange.profiles.parts import Names, Timeline, collect_spans
from corebound.worker.operator_table import Span

SOURCE = "TensorFlow profiler, Chrome trace"
_EAGER = "EagerLocalExecute: "


def matches(event: Event) -> bool:
    """Whether an event can only come from TensorFlow."""
    args = _args(event)
    return "long_name" in args or "step_num" in args or args.get("name") == "/host:CPU"


def read(events: Iterable[Event]) -> Timeline:
    """Read the operators, and the iterations if `Trace(…, step_num=…)` marked them.

    Raises:
        Unreadable: A time is invalid, or no operator ran.
    """
    threads: dict[tuple[str, str], int] = {}
    names = Names()
    marks: list[tuple[int, int]] = []

    def spans() -> Iterable[Span]:
        for event in events:
            if event["ph"] != "X":
                continue
            args = _args(event)
            type_ = operator_type(str(event.get("name", "")), str(args.get("long_name", "")))
            if type_ is None and "step_num" not in args:
                continue
            begin_ns, end_ns = times_ns(event)
            if type_ is None:
                marks.append((begin_ns, end_ns))
                continue
            thread = (str(event.get("pid")), str(event.get("tid")))
            yield Span(
                type=names.of(type_),
                thread=threads.setdefault(thread, len(threads)),
                begin_ns=begin_ns,
                end_ns=end_ns,
            )

    collected = collect_spans(spans())
    # The trace may hold only the first million events; the XPlane file beside it holds all.
    return Timeline(source=SOURCE, spans=collected, marks=tuple(sorted(marks)), rank=1)


def operator_type(displayed: str, full: str) -> str | None:
    """The type of an event's operator; None for events that merely run operators.

    In a graph, an operator is named `place:Type` and displayed as `Type`. In eager mode it is
    `EagerLocalExecute: Type`, as is a whole function, whose name begins with `__`.
    """
    if displayed and full.endswith(f":{displayed}"):
        return displayed
    before, _, type_ = (displayed or full).partition(_EAGER)
    return type_ if not before and type_ and not type_.startswith("__") else None


def _args(event: Event) -> dict[str, Any]:
    args = event.get("args")
    return args if isinstance(args, dict) else {}
