"""From what the files of one export tell to one operator profile."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from corebound.exchange.reading import Iterations, Part, Sum, Sums, Timeline, Unreadable
from corebound.model.operators import Span, Step, steps_of, tabulate
from corebound.model.profile import OperatorProfile
from corebound.model.wire import Operator

P = TypeVar("P", bound=Part)

# What a record holds: an integer of 63 bits.
_LARGEST_NS = 1 << 62


def profile_of(parts: Sequence[Part]) -> tuple[str, OperatorProfile]:
    """What made the profile, in words, and the profile.

    When operators ran is preferred to how long they took in all. With the marks of
    iterations beside it, of the same file or another, the table is made as corebound
    makes its own. Without them, figures are divided by the number of iterations
    where that is known, else they are of all that was profiled.

    Args:
        parts: Of one device, at least one.

    Raises:
        Unreadable: they hold no operator, or more time than can be.
    """
    timelines = _best([part for part in parts if isinstance(part, Timeline)])
    sums = _best([part for part in parts if isinstance(part, Sums)])
    steps = _best([part for part in parts if isinstance(part, Iterations)])
    told = {part.iterations for part in sums} - {None}
    iterations = told.pop() if len(told) == 1 else sum(len(part.marks) for part in steps) or None
    if timelines:
        used: list[Part] = [*timelines, *steps]
        profile = _of_timelines(timelines, steps, iterations)
    elif sums:
        used = [*sums, *steps]
        profile = _of_sums([row for part in sums for row in part.rows], steps, iterations)
    else:
        raise Unreadable(
            "it tells when iterations ran, but no operator.",
            "Name op_summary or op_statistic of the same export with it.",
        )
    _check(profile)
    return " and ".join(dict.fromkeys(part.source for part in used)), profile


def _best(parts: Sequence[P]) -> list[P]:
    """Those that tell most; the others would count the same again."""
    lowest = min((part.rank for part in parts), default=0)
    return [part for part in parts if part.rank == lowest]


def _check(profile: OperatorProfile) -> None:
    if sum(one.total_ns for one in profile.operators) > _LARGEST_NS:
        raise Unreadable("its times add up to centuries.", "Export the profile again.")


def _of_timelines(
    timelines: Sequence[Timeline], steps: Sequence[Iterations], iterations: int | None
) -> OperatorProfile:
    # Slices of one export each counted their threads from 0.
    spans = [
        replace(span, thread=span.thread * len(timelines) + number) if number else span
        for number, one in enumerate(timelines)
        for span in one.spans
    ]
    marks = [mark for one in timelines for mark in one.marks]
    marks += [mark for one in steps for mark in one.marks]
    computing = sorted(one for part in steps for one in part.computing)
    marked = steps_of(sorted(set(marks)), _with_phases(spans, computing) if computing else spans)
    # Exports often hold the operators of some of the iterations only.
    if whole := [step for step in marked if any(span.type is not None for span in step.spans)]:
        table = tabulate(whole, None)
        return OperatorProfile(
            iterations=table.iterations,
            step_ns=table.step_ns,
            outside_ns=table.outside_ns,
            operators=tuple(table.operators),
            phases=table.phases,
        )
    return _all_at_once(spans, iterations)


def _with_phases(spans: Iterable[Span], computing: Sequence[tuple[int, int]]) -> list[Span]:
    """Before a forward pass data is got ready, after its backward pass weights are updated."""
    begins = [begin_ns for begin_ns, _ in computing]
    named = []
    for span in spans:
        latest = bisect_right(begins, span.begin_ns) - 1
        if latest < 0:
            phase = "data"
        elif span.begin_ns < computing[latest][1]:
            phase = "forward and backward"
        else:
            phase = "update"
        named.append(replace(span, phase=phase))
    return named


def _all_at_once(spans: Sequence[Span], iterations: int | None) -> OperatorProfile:
    """A profile of all that ran, from the first operator's begin to the last one's end."""
    ran = [span for span in spans if span.type is not None]
    whole = Step(
        begin_ns=min(span.begin_ns for span in ran),
        end_ns=max(span.end_ns for span in ran),
        spans=tuple(spans),
    )
    table = tabulate([whole], None)
    each = iterations or 1
    return OperatorProfile(
        iterations=iterations,
        # How long an iteration took, pauses between them left out, is not told.
        step_ns=None if iterations else table.step_ns,
        outside_ns=None if iterations else table.outside_ns,
        operators=tuple(
            replace(one, calls=one.calls / each, total_ns=round(one.total_ns / each), quiet_ns=None)
            for one in table.operators
        ),
        phases={name: round(time_ns / each) for name, time_ns in table.phases.items()},
    )


def _of_sums(
    rows: Sequence[Sum], steps: Sequence[Iterations], iterations: int | None
) -> OperatorProfile:
    """A profile of a table of sums; what ran at the same time counts in full for each.

    So the operators may come to more than the step, and what is outside of them is
    not known even where the step is.
    """
    by_type: dict[str, list[Sum]] = defaultdict(list)
    for row in rows:
        if row.calls:
            by_type[row.type].append(row)
    if not by_type:
        raise Unreadable("it holds no operator that ran.", "Profile while a step runs.")
    marks = [end_ns - begin_ns for part in steps for begin_ns, end_ns in part.marks]
    each = iterations or 1
    operators = [_merged(type_, found, each) for type_, found in by_type.items()]
    return OperatorProfile(
        iterations=iterations,
        step_ns=round(sum(marks) / len(marks)) if marks else None,
        outside_ns=None,
        operators=tuple(sorted(operators, key=lambda one: (-one.total_ns, one.type))),
        phases={},
    )


def _merged(type_: str, rows: Sequence[Sum], iterations: int) -> Operator:
    lows = [row.min_ns for row in rows if row.min_ns is not None]
    highs = [row.max_ns for row in rows if row.max_ns is not None]
    return Operator(
        type=type_,
        calls=sum(row.calls for row in rows) / iterations,
        total_ns=round(sum(row.total_ns for row in rows) / iterations),
        quiet_ns=None,
        min_ns=min(lows) if len(lows) == len(rows) else None,
        max_ns=max(highs) if len(highs) == len(rows) else None,
    )
