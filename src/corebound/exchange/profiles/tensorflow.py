"""Read TensorFlow's `trace.json.gz` from its profiler: the operators on the host."""

from collections.abc import Iterable
from typing import Any

from corebound.exchange.profiles.chrome import Described, Event, timeline
from corebound.exchange.profiles.parts import Timeline
from corebound.worker.operator_table import type_in_tensorflow

SOURCE = "TensorFlow profiler, Chrome trace"


def matches(event: Event) -> bool:
    """Whether an event can only come from TensorFlow."""
    args = _args(event)
    return "long_name" in args or "step_num" in args or args.get("name") == "/host:CPU"


def read(events: Iterable[Event]) -> Timeline:
    """Read the operators, and the iterations if `Trace(…, step_num=…)` marked them.

    Raises:
        Unreadable: A time is invalid, or no operator ran.
    """

    def describe(event: Event) -> Described | None:
        args = _args(event)
        type_ = type_in_tensorflow(str(event.get("name", "")), str(args.get("long_name", "")))
        if event["ph"] != "X" or (type_ is None and "step_num" not in args):
            return None
        return Described(type_, is_span=type_ is not None, is_mark=type_ is None)

    # The trace may hold only the first million events; the XPlane file beside it holds all.
    return timeline(SOURCE, events, describe, rank=1)


def _args(event: Event) -> dict[str, Any]:
    args = event.get("args")
    return args if isinstance(args, dict) else {}
