"""From what a framework's profiler saw to one table: the same arithmetic for all of them.

Standard library only. Times are nanoseconds on whatever clock the profiler has.
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

from corebound.worker.protocol import Operator, Profile

# What the iterations of corebound's own profiles are marked with.
OWN_STEP = "corebound.step"
# What torch itself marks within a step, by how the mark's name begins.
_TORCH_PHASES = {
    "autograd::engine::evaluate_function": "backward",
    "Optimizer.": "update",
    "enumerate(DataLoader)": "data",
}


def phase_in_torch(name: str) -> str | None:
    """What an event of torch's profiler is for, by its name; None where that does not tell.

    >>> phase_in_torch("Optimizer.step#SGD.step")
    'update'
    """
    return next((phase for start, phase in _TORCH_PHASES.items() if name.startswith(start)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of one thread's time.

    Attributes:
        type: The operator's type; None for what merely holds operators, such as
            a step or an annotation, whose own time is no operator's.
        phase: What it and all within it are for, where the framework tells.
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
    """Part of a step in which a thread was in one operator and in none within that."""

    begin_ns: int
    end_ns: int
    call: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """A step divided among its calls, in the order they began."""

    wall_ns: int
    calls: dict[str, list[float]]
    phases: dict[str, float]

    @property
    def outside_ns(self) -> float:
        return self.wall_ns - sum(sum(own) for own in self.calls.values())


def tabulate(steps: Sequence[Step], trace: str | None) -> Profile:
    """Divide the time of steps among the types of their operators.

    Of every moment, the innermost operator of each thread has an equal share;
    a moment without any is outside operators. So the table adds up to the step,
    however many threads run operators at once.

    Totals are means over the middle half of the steps by wall time: one that
    something else disturbed does not count, while what slows down every step
    does. `quiet_ns` takes each call at its shortest instead, as if nothing had
    ever been in its way.

    Args:
        steps: At least one, warm.
        trace: A file in the Chrome trace format, or None.
    """
    shared = [_share(step) for step in steps]
    middle = _middle_half(shared)
    types = dict.fromkeys(type_ for step in shared for type_ in step.calls)
    operators = [_operator(type_, shared, middle) for type_ in types]
    return Profile(
        iterations=len(steps),
        step_ns=round(statistics.fmean(step.wall_ns for step in middle)),
        outside_ns=round(statistics.fmean(step.outside_ns for step in middle)),
        operators=sorted(operators, key=lambda one: (-one.total_ns, one.type)),
        phases=_phases(middle),
        trace=trace,
    )


def steps_of(marks: Iterable[tuple[int, int]], spans: Iterable[Span]) -> list[Step]:
    """Deal out spans to the steps that they began in.

    Args:
        marks: When each step began and ended.
        spans: All spans, in any order; those of no step are left out.
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
    """Give operators that ran at the same time a thread each, where the profiler tells none.

    They never run within one another, so what overlaps ran side by side.

    Args:
        calls: When each began and ended, in nanoseconds, and its type, in any order.
    """
    free: list[tuple[int, int]] = []  # (when it ended, thread)
    for began_ns, ended_ns, type_ in sorted(calls):
        idle = free and free[0][0] <= began_ns
        thread = heapq.heappop(free)[1] if idle else len(free)
        heapq.heappush(free, (ended_ns, thread))
        yield Span(type=type_, thread=thread, begin_ns=began_ns, end_ns=ended_ns)


def chrome_trace(steps: Iterable[Step]) -> str:
    """Steps in the Chrome trace format, for a framework that does not write it itself."""
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


def _operator(type_: str, every: Sequence[_Shared], middle: Sequence[_Shared]) -> Operator:
    calls = [step.calls.get(type_, []) for step in every]
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
    """The sum over calls of the shortest that each was in any step.

    The nth call of a step is the nth of another where both have as many, so only
    steps with the most frequent number of calls are looked at.
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
    told = any(phases)
    return _Shared(
        wall_ns=step.end_ns - step.begin_ns,
        calls=dict(by_type),
        phases=dict(by_phase) if told else {},
    )


def _innermost(
    spans: Sequence[Span], indices: Iterable[int], phases: list[str | None]
) -> Iterator[_Stretch]:
    """When one thread was in each of its spans and in none within that; notes their phases."""
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
            # What ends after that which holds it does so by rounding only.
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
    """Deal out each moment in equal parts to the stretches of different threads that share it."""
    edges = []
    for stretch in stretches:
        low, high = max(stretch.begin_ns, begin_ns), min(stretch.end_ns, end_ns)
        if high > low:
            edges += [(low, True, stretch.call), (high, False, stretch.call)]
    edges.sort()
    active: set[int] = set()
    at_ns = begin_ns
    for when_ns, begins, call in edges:
        for one in active:
            yield one, (when_ns - at_ns) / len(active)
        at_ns = when_ns
        (active.add if begins else active.discard)(call)
