"""Builds the table of operator times from a profiler's events, in the same way for all frameworks.

Uses only the standard library. Times are nanoseconds on the profiler's clock.
"""

from __future__ import annotations

import heapq
import json
import math
import statistics
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

# The annotation that marks the iterations in corebound's own profiles.
OWN_STEP = "corebound.step"
# The phases of PyTorch's own annotations within a step, by the prefix of the annotation's name.
_TORCH_PHASES = {
    "autograd::engine::evaluate_function": "backward",
    "Optimizer.": "update",
    "enumerate(DataLoader)": "data",
}


def phase_in_torch(name: str) -> str | None:
    """The phase of an event of PyTorch's profiler by its name; None if the name shows none.

    >>> phase_in_torch("Optimizer.step#SGD.step")
    'update'
    """
    return next((phase for start, phase in _TORCH_PHASES.items() if name.startswith(start)), None)


def type_in_tensorflow(displayed: str, full: str) -> str | None:
    """The type of an operator of TensorFlow's profiler; None for an event that only runs operators.

    In a graph, an operator is named `scope:Type` and displayed as `Type`. In eager mode it is
    `EagerLocalExecute: Type`, as is a whole function, whose name begins with `__`.
    """
    if displayed and full.endswith(f":{displayed}"):
        return displayed
    for text in (displayed, full):
        before, _, type_ = text.partition("EagerLocalExecute: ")
        if not before and type_ and not type_.startswith("__"):
            return type_
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """The self time of all operators of one type: excludes the operators that they call.

    Attributes:
        type: The framework's name for the type.
        calls: Calls per iteration.
        total_ns: Time per iteration. If operators run in several threads at the same
            moment, that moment is divided equally among them.
        quiet_ns: The same for an undisturbed iteration: each call at its shortest.
        min_ns, max_ns: The shortest and longest call of all iterations.

    The last three are None if an imported profile does not contain them.
    """

    type: str
    calls: float
    total_ns: int
    quiet_ns: int | None
    min_ns: int | None
    max_ns: int | None

    @property
    def mean_ns(self) -> float:
        """The mean time per call; 0 for a type not called in the iterations that count."""
        return self.total_ns / self.calls if self.calls else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How an iteration's time is divided; `operators` and `outside_ns` add up to `step_ns`.

    Attributes:
        iterations: The number of profiled iterations.
        step_ns: Wall time of an iteration under the profiler.
        outside_ns: The part of it in which no operator ran.
        operators: The operators by type, largest total time first.
        phases: Time in operators per iteration, by phase (`forward`, `backward`,
            `update`, `data`); empty if the framework does not report phases.
        trace: The path of a Chrome trace of the iterations, in the worker's own folder.
    """

    kind: Literal["profile"] = "profile"
    iterations: int
    step_ns: int
    outside_ns: int
    operators: list[Operator]
    phases: dict[str, int]
    trace: str | None


def profile_from_fields(**fields: Any) -> Profile:
    """The profile of a message.

    Raises:
        TypeError: a field is missing or unknown.
        KeyError: there are no operators.
    """
    operators = [Operator(**row) for row in fields.pop("operators")]
    return Profile(operators=operators, **fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An interval of one thread's time.

    Attributes:
        type: The operator's type; None for an event that only contains operators, such as
            a step or an annotation. Its self time belongs to no operator.
        phase: The phase of the span and everything within it, if the framework reports it.
    """

    type: str | None
    thread: int
    begin_ns: int
    end_ns: int
    phase: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One profiled iteration and the spans within it, in any order."""

    begin_ns: int
    end_ns: int
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """A part of a step in which one operator was a thread's innermost."""

    begin_ns: int
    end_ns: int
    call: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """A step's time divided among its operator calls, in the order in which they started."""

    wall_ns: int
    calls: dict[str, list[float]]
    phases: dict[str, float]

    @property
    def outside_ns(self) -> float:
        return self.wall_ns - sum(sum(own) for own in self.calls.values())


def tabulate(steps: Sequence[Step], trace: str | None) -> Profile:
    """Divide the time of steps among their operator types.

    Each moment is divided equally among the innermost operators of all threads. A moment
    without any operator counts as outside. The table therefore adds up to the step,
    regardless of how many threads run operators at once.

    Totals are means over the middle half of the steps by wall time. This excludes single
    disturbed steps, but includes effects that slow down every step. `quiet_ns` uses the
    shortest duration of each call instead, as if there were no disturbances.

    Args:
        steps: At least one step, all warm.
        trace: The path of a file in the Chrome trace format, or None.
    """
    shared = [_share(step) for step in steps]
    middle = _middle_half(shared)
    types = dict.fromkeys(type_ for step in shared for type_ in step.calls)
    operators = [_operator(type_, shared, middle) for type_ in types]
    return Profile(
        iterations=len(steps),
        step_ns=round(statistics.fmean(step.wall_ns for step in middle)),
        outside_ns=round(statistics.fmean(step.outside_ns for step in middle)),
        operators=sorted(operators, key=lambda operator: (-operator.total_ns, operator.type)),
        phases=_phases(middle),
        trace=trace,
    )


def steps_of(marks: Iterable[tuple[int, int]], spans: Iterable[Span]) -> list[Step]:
    """Assign spans to the steps in which they started.

    Args:
        marks: The start and end of each step.
        spans: All spans, in any order; spans outside all steps are ignored.
    """
    ordered = sorted(spans, key=lambda span: span.begin_ns)
    begins = [span.begin_ns for span in ordered]
    return [
        Step(
            begin_ns=begin_ns,
            end_ns=end_ns,
            spans=tuple(ordered[bisect_left(begins, begin_ns) : bisect_left(begins, end_ns)]),
        )
        for begin_ns, end_ns in marks
    ]


def side_by_side(calls: Iterable[tuple[int, int, str]]) -> Iterator[Span]:
    """Assign overlapping operators to different threads, for a profiler that reports no threads.

    Such operators are never nested, so overlapping ones ran in parallel.

    Args:
        calls: The start, end (in nanoseconds) and type of each operator, in any order.
    """
    free: list[tuple[int, int]] = []  # (when it ended, thread)
    for begin_ns, end_ns, type_ in sorted(calls):
        idle = free and free[0][0] <= begin_ns
        thread = heapq.heappop(free)[1] if idle else len(free)
        heapq.heappush(free, (end_ns, thread))
        yield Span(type=type_, thread=thread, begin_ns=begin_ns, end_ns=end_ns)


def chrome_trace(steps: Iterable[Step]) -> str:
    """Write steps in the Chrome trace format, for a framework that does not write it itself."""
    events = [
        {
            "ph": "X",
            "name": span.type,
            "pid": 1,
            "tid": span.thread,
            "ts": span.begin_ns / 1000,
            "dur": (span.end_ns - span.begin_ns) / 1000,
        }
        for step in steps
        for span in (
            Span(type="step", thread=0, begin_ns=step.begin_ns, end_ns=step.end_ns),
            *step.spans,
        )
    ]
    return json.dumps({"traceEvents": events})


def _operator(type_: str, all_steps: Sequence[_Shared], middle: Sequence[_Shared]) -> Operator:
    calls = [step.calls.get(type_, []) for step in all_steps]
    return Operator(
        type=type_,
        calls=statistics.fmean(len(step.calls.get(type_, ())) for step in middle),
        total_ns=round(statistics.fmean(sum(step.calls.get(type_, ())) for step in middle)),
        quiet_ns=round(_quiet_ns(calls)),
        min_ns=round(min(call for own in calls for call in own)),
        max_ns=round(max(call for own in calls for call in own)),
    )


def _middle_half(steps: Sequence[_Shared]) -> Sequence[_Shared]:
    ranked = sorted(steps, key=lambda step: step.wall_ns)
    cut = len(ranked) // 4
    return ranked[cut : len(ranked) - cut]


def _quiet_ns(calls: Sequence[Sequence[float]]) -> float:
    """The sum over calls of each call's shortest duration in any step.

    The nth calls of two steps correspond only if both steps have the same number of calls.
    Therefore only steps with the most frequent number of calls are used.
    """
    usual = statistics.mode(len(own) for own in calls)
    same = zip(*(own for own in calls if len(own) == usual), strict=True)
    return math.fsum(min(call) for call in same)


def _phases(steps: Sequence[_Shared]) -> dict[str, int]:
    names = dict.fromkeys(name for step in steps for name in step.phases)
    return {
        name: round(statistics.fmean(step.phases.get(name, 0.0) for step in steps))
        for name in names
    }


def _share(step: Step) -> _Shared:
    calls = sorted(step.spans, key=lambda span: (span.begin_ns, -span.end_ns))
    phases: list[str | None] = [None] * len(calls)
    threads: dict[int, list[int]] = defaultdict(list)
    for index, span in enumerate(calls):
        threads[span.thread].append(index)
    stretches = [
        stretch
        for indices in threads.values()
        for stretch in _innermost(calls, indices, phases)
        if calls[stretch.call].type is not None
    ]
    own_ns = [0.0] * len(calls)
    for call, share_ns in _divide(stretches, step.begin_ns, step.end_ns):
        own_ns[call] += share_ns
    by_type: dict[str, list[float]] = defaultdict(list)
    by_phase: dict[str, float] = defaultdict(float)
    for span, phase, share_ns in zip(calls, phases, own_ns, strict=True):
        if span.type is not None:
            by_type[span.type].append(share_ns)
            by_phase[phase or "forward"] += share_ns
    has_phases = any(phases)
    return _Shared(
        wall_ns=step.end_ns - step.begin_ns,
        calls=dict(by_type),
        phases=dict(by_phase) if has_phases else {},
    )


def _innermost(
    spans: Sequence[Span], indices: Iterable[int], phases: list[str | None]
) -> Iterator[_Stretch]:
    """The intervals in which each span of a thread was innermost; also sets `phases`."""
    stack: list[tuple[int, int]] = []  # (index, end)
    at_ns = 0

    def leave(until_ns: int) -> Iterator[_Stretch]:
        nonlocal at_ns
        while stack and stack[-1][1] <= until_ns:
            index, end_ns = stack.pop()
            if end_ns > at_ns:
                yield _Stretch(begin_ns=at_ns, end_ns=end_ns, call=index)
                at_ns = end_ns

    for index in indices:
        span = spans[index]
        yield from leave(span.begin_ns)
        end_ns = span.end_ns
        if stack:
            above, above_end_ns = stack[-1]
            # A span ends after the span that contains it only because of rounding.
            end_ns = min(end_ns, above_end_ns)
            if span.begin_ns > at_ns:
                yield _Stretch(begin_ns=at_ns, end_ns=span.begin_ns, call=above)
        phases[index] = span.phase or (phases[stack[-1][0]] if stack else None)
        at_ns = span.begin_ns
        stack.append((index, end_ns))
    if stack:
        yield from leave(stack[0][1])


def _divide(
    stretches: Iterable[_Stretch], begin_ns: int, end_ns: int
) -> Iterator[tuple[int, float]]:
    """Divide each moment equally among the overlapping stretches of different threads."""
    edges = []
    for stretch in stretches:
        low, high = max(stretch.begin_ns, begin_ns), min(stretch.end_ns, end_ns)
        if high > low:
            edges += [(low, True, stretch.call), (high, False, stretch.call)]
    edges.sort()
    active: set[int] = set()
    at_ns = begin_ns
    for when_ns, begins, call in edges:
        for span in active:
            yield span, (when_ns - at_ns) / len(active)
        at_ns = when_ns
        (active.add if begins else active.discard)(call)
