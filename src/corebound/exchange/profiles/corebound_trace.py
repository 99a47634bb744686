"""Read traces that corebound wrote for frameworks without traces: the inverse of `chrome_trace`."""

from __future__ import annotations

from collections.abc import Iterable

from corebound.exchange.profiles.chrome import Event
from corebound.exchange.reading import Names, Timeline, capped, nanoseconds
from corebound.worker.operator_table import Span

SOURCE = "corebound, Chrome trace"
_STEP = ("step", 0)
_US = 1000


def matches(event: Event) -> bool:
    """Whether an event is a step in corebound's own format."""
    return (event.get("name"), event.get("tid")) == _STEP and set(event) == {
        "ph", "name", "pid", "tid", "ts", "dur"
    }  # fmt: skip


def read(events: Iterable[Event]) -> Timeline:
    """Read the operators of each step.

    Raises:
        Unreadable: A time is invalid, or no operator ran.
    """
    names = Names()
    marks: list[tuple[int, int]] = []

    def spans() -> Iterable[Span]:
        for event in events:
            begin_ns = nanoseconds(event.get("ts"), _US)
            end_ns = begin_ns + max(0, nanoseconds(event.get("dur", 0), _US))
            if matches(event):
                marks.append((begin_ns, end_ns))
                continue
            thread = event.get("tid")
            yield Span(
                type=names.of(str(event.get("name", ""))),
                thread=thread if isinstance(thread, int) else 0,
                begin_ns=begin_ns,
                end_ns=end_ns,
            )

    kept = capped(spans())
    return Timeline(source=SOURCE, spans=kept, marks=tuple(sorted(marks)))
