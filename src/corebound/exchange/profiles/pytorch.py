"""Read PyTorch traces from torch.profiler's `export_chrome_trace`: the operators on the CPU."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from corebound.exchange.profiles.chrome import Described, Event, timeline, times_ns
from corebound.exchange.profiles.parts import Timeline
from corebound.worker.operator_table import OWN_STEP, Span, phase_in_torch

SOURCE = "PyTorch profiler, Chrome trace"

# Before 1.11, operators and annotations were both `Operator`.
_OPERATORS = ("cpu_op", "Operator")
_ANNOTATION = "user_annotation"
_PROFILER_STEP = "ProfilerStep#"


def matches(event: Event) -> bool:
    """Whether an event can only come from PyTorch."""
    return event["ph"] == "X" and event.get("cat") in (*_OPERATORS, _ANNOTATION)


def read(events: Iterable[Event]) -> Timeline:
    """Read the operators, and the iterations if `profiler.step()` marked them.

    Raises:
        Unreadable: A time is invalid, or no operator ran.
    """
    own_marks: list[tuple[int, int]] = []

    def describe(event: Event) -> Described | None:
        if not matches(event):
            return None
        name = str(event.get("name", ""))
        if name == OWN_STEP:
            own_marks.append(times_ns(event))
        is_step = name.startswith(_PROFILER_STEP)
        # Annotations contain operators but are none; autograd names a function after `: `.
        annotates = is_step or event["cat"] == _ANNOTATION or name.startswith("Optimizer.")
        type_ = None if annotates else name.partition(": ")[0]
        return Described(type_, phase_in_torch(name), is_mark=is_step)

    found = timeline(SOURCE, events, describe)
    return replace(
        found,
        spans=_merge_wrappers(found.spans),
        # In corebound's own profiles, the first iteration warms up the profiler.
        marks=found.marks or tuple(sorted(own_marks)[len(own_marks) > 1 :]),
    )


def _merge_wrappers(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Remove an operator that is the only child of one of the same type.

    Many operators are two functions of one name, one of which calls the other. torch's own
    tables count such a pair once; its time is the same either way.
    """
    ordered = sorted(spans, key=lambda span: (span.begin_ns, -span.end_ns))
    # For each operator, the one that represents it, and its number of direct children.
    representative = list(range(len(ordered)))
    parents: list[int | None] = []
    children = [0] * len(ordered)
    stacks: dict[int, list[int]] = {}
    for index, span in enumerate(ordered):
        stack = stacks.setdefault(span.thread, [])
        while stack and ordered[stack[-1]].end_ns <= span.begin_ns:
            stack.pop()
        parents.append(stack[-1] if stack else None)
        if stack:
            children[stack[-1]] += 1
        stack.append(index)
    for index, span in enumerate(ordered):
        parent = parents[index]
        if parent is None or span.type is None:
            continue
        outer = representative[parent]
        if children[outer] == 1 and ordered[outer].type == span.type:
            representative[index] = outer
            children[outer] = children[index]
    return tuple(span for index, span in enumerate(ordered) if representative[index] == index)
