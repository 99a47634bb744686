"""What to set for each scenario, and the largest effect that was measured.

An effect is a significant difference between two configurations that do the same work, in either
direction. The largest is the one that is furthest from 1 at the end of its interval nearest to 1,
so that an estimate from a few noisy launches does not come first.
"""

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal

from msgspec import Struct

from corebound.analysis import suggested_commands, wording
from corebound.analysis.commit_comparison import sides_verdict
from corebound.analysis.forecast import time_of_launch
from corebound.analysis.scenario_result import (
    BaselineComparison,
    CellResult,
    ScenarioResult,
    compare_cells,
    findings,
    may_lead,
)
from corebound.analysis.selection import title_of, varying_axes
from corebound.analysis.what_to_set import WhatToSet, what_to_set
from corebound.scenario.cell import Binding, Cell, Threads
from corebound.scenario.compared_axis import compared_axis
from corebound.scenario.settings import SETTINGS
from corebound.stats.comparison import Comparison
from corebound.stats.multiplicity import suite_findings

# Axes on which cells do the same work in another library, so that they can be compared although
# they have different baselines.
_LIBRARY_AXES = frozenset({"environment", "framework"})


AdviceKind = Literal["use", "keep", "measure"]


class Effect(Struct, frozen=True, kw_only=True):
    """A difference between two configurations of one scenario.

    Attributes:
        cell, other: The two; the comparison is of the first against the second.
        title: What both have in common and other groups of the scenario do not; may be empty.
    """

    cell: CellResult
    other: CellResult
    comparison: Comparison
    title: str = ""

    @property
    def is_faster(self) -> bool:
        """Whether the first is the faster one."""
        return self.comparison.speedup_ratio > 1

    @property
    def least_ratio(self) -> float:
        """How many times faster or slower it is at least, at the end of the interval nearest to 1.

        At least 1.
        """
        interval = self.comparison.interval
        if interval is None:
            return 1.0
        return max(1.0, interval.low, 1 / interval.high)

    @property
    def may_lead(self) -> bool:
        """Whether it may be a headline, if it is significant."""
        return may_lead(self.cell, self.other, self.comparison)

    @property
    def distance(self) -> float:
        """How far the ratio is from 1, as a logarithm."""
        return abs(math.log(self.comparison.speedup_ratio))

    @property
    def slower(self) -> CellResult:
        """The slower one of the two."""
        return self.other if self.is_faster else self.cell

    @property
    def between_libraries(self) -> bool:
        """Whether both do the same work and differ in their library or framework only."""
        axes = wording.differing_axes(self.cell.cell, self.other.cell)
        return bool(axes) and _LIBRARY_AXES.issuperset(axes)

    @property
    def is_actionable(self) -> bool:
        """Whether somebody can act on it.

        What is slower because it has more to do, or may use less CPU time, is no advice.
        """
        cell, other = self.cell.cell, self.other.cell
        return self.is_faster or (cell.parameters, cell.cpu_quota) == (
            other.parameters,
            other.cpu_quota,
        )

    @property
    def subject(self) -> str:
        """The first configuration, as the subject of a sentence: `binding to one CPU`."""
        if self.between_libraries:
            return library(self.cell.cell)
        text = wording.doing(self.cell.cell, self.other.cell)
        return text[:1].lower() + text[1:]

    @property
    def name(self) -> str:
        """The first configuration by what distinguishes it from the second: `one CPU`."""
        if self.between_libraries:
            return library(self.cell.cell)
        return wording.compared_with(self.other.cell, self.cell.cell)

    @property
    def reference(self) -> str:
        """The second configuration, as the other side of the comparison: `the default`."""
        if self.between_libraries:
            return library(self.other.cell)
        axes = wording.differing_axes(self.cell.cell, self.other.cell)
        if is_default(self.other.cell) and not any(_is_work(axis) for axis in axes):
            return "the default"
        return wording.compared_with(self.cell.cell, self.other.cell)

    @property
    def instruction(self) -> str:
        """What to do to get the first configuration, without a full stop."""
        if self.between_libraries:
            return f"Use {self.subject} instead of {self.reference}"
        return wording.instruction(self.cell.cell, self.other.cell)


class Unconfirmed(Struct, frozen=True, kw_only=True):
    """The largest difference that was seen in a scenario where nothing is decided.

    Attributes:
        effect: The two configurations, and their comparison.
        reason: Why it is not decided; `correction`: among so many comparisons it may be chance.
        cause: What the diagnosis of the slower one found; empty if no rule applies.
        launches: How many of each are expected to decide.
        command: Launches both as often as that.
        duration_s: The time that this takes, judged by their launches so far.
    """

    effect: Effect
    reason: wording.OpenReason | Literal["correction"]
    cause: str
    launches: int
    command: suggested_commands.CommandLine
    duration_s: float

    @property
    def looks(self) -> str:
        """What was seen: `Running with 1 thread looks 450× faster than the default.`."""
        effect = self.effect
        looks = wording.relative_speed(
            effect.comparison.speedup_ratio, words=effect.cell.cell.words_in_sentence
        )
        return wording.capital(f"{effect.subject} looks {looks} than {effect.reference}.")

    @property
    def says(self) -> str:
        """The same, with what both configurations have in common: `12 workers: running with …`."""
        title, looks = self.effect.title, self.looks
        return wording.capital(f"{title}: {looks[:1].lower()}{looks[1:]}") if title else looks

    @property
    def basis(self) -> str:
        """Why it is not decided: `One launch each`."""
        return why_open(self.effect, self.reason)

    @property
    def remedy(self) -> str:
        """What decides it: `Confirm with 6 launches of each, about 4 minutes`."""
        launches = wording.count(self.launches, "launch", "launches")
        return f"Confirm with {launches} of each, {wording.about_time(self.duration_s)}"

    @property
    def text(self) -> str:
        """All of it, with the cause and the command that decides it."""
        cause = f" {self.cause}." if self.cause else ""
        return f"{self.says}{cause} {self.basis}. {self.remedy}: `{self.command.line}`"


def why_open(effect: Effect, reason: wording.OpenReason | Literal["correction"]) -> str:
    """Why an effect is not decided, in words: `One launch each`."""
    comparison = effect.comparison
    launches = [len(side.summary.launches) for side in (effect.cell, effect.other)]
    if reason == "one launch":
        return "One launch each" if max(launches) == 1 else "One launch of one of the two"
    if reason == "correction" and not effect.may_lead:
        return f"Only {wording.count(min(launches), 'launch', 'launches')} of each"
    bounds = wording.compared_bounds(comparison)
    if reason == "spread" and comparison.interval is None:
        return wording.capital(bounds)
    reasons = {
        "disturbance": "Other programs disturbed the slower one",
        "budget": "The budget ended",
        "correction": "Not significant after correction",
        "spread": f"95 % CI {bounds}",
    }
    return f"{reasons[reason]}, with {min(launches)} launches of each"


class RaceDecision(Struct, frozen=True, kw_only=True):
    """What a race of `corebound tune` decided: a sentence, and what it is based on."""

    says: str
    basis: str


class Advice(Struct, frozen=True, kw_only=True):
    """What is known about one scenario, and what to do.

    Attributes:
        kind: `use`: the configuration `use.cell` is faster; `keep`: nothing beats the baseline;
            `measure`: too little data.
        seen: The largest difference that was seen, if none is decided, else None.
        largest: The largest effect; None if nothing is significant.
        use: The effect behind `use`, else None.
        avoid: The effect of a configuration that is much slower than the baseline, else None.
        best: The best alternative to the baseline, whatever its verdict; None without one.
        set: What to set; only for `use`, and None if no line expresses it.
        command: What to run; only for `measure`.
        race: What a race of the scenario decided on its host. It tried more and launched anew, so
            that it overrides the scenario's own advice.
    """

    result: ScenarioResult
    kind: AdviceKind
    seen: Unconfirmed | None = None
    largest: Effect | None = None
    use: Effect | None = None
    avoid: Effect | None = None
    best: Effect | None = None
    set: WhatToSet | None = None
    command: suggested_commands.CommandLine | None = None
    race: RaceDecision | None = None

    @property
    def kept(self) -> CellResult | None:
        """The configuration to use: the recommended one, or the baseline."""
        return self.use.cell if self.use else self.result.baseline

    @property
    def prompt(self) -> str:
        """What to do, before the line to paste."""
        return self.seen.remedy if self.kind == "measure" and self.seen else self.says

    @property
    def says(self) -> str:
        """The advice in one or two sentences."""
        if self.race is not None:
            return f"{self.race.says} {self.race.basis}"
        if compared_axis(self.result.source.document) == ("commit",):
            return wording.plain(sides_verdict(self.result))
        if self.use is not None:
            return f"{self.use.instruction}{_compared_libraries(self.use)}."
        if self.kind == "measure":
            return self._says_so_far
        if self.best is None:
            return "No other configuration differs here."
        avoided = self.avoid.instruction if self.avoid else ""
        avoid = f" Do not {avoided[:1].lower()}{avoided[1:]}." if avoided else ""
        return f"Keep {self.best.reference}.{avoid}"

    @property
    def _says_so_far(self) -> str:
        if self.seen is not None:
            return f"{self.seen.says} {self.seen.basis}."
        return "No difference seen yet." if self.best else "Not measured yet."

    @property
    def same(self) -> tuple[Cell, ...]:
        """Configurations that get the same CPUs and threads as the one to use."""
        if self.kept is None:
            return ()
        key = self.kept.cell.key
        equivalent = (
            cell.cell
            for cell in self.result.cells
            if cell.equivalent_cell is not None and cell.equivalent_cell.key == key
        )
        return (*self.kept.duplicates, *equivalent)


def _compared_libraries(use: Effect) -> str:
    """How two libraries compare: no row of a table compares two baselines. Empty for others."""
    if not use.between_libraries:
        return ""
    pairs = wording.count(use.comparison.pairs, "paired launch", "paired launches")
    bounds = wording.compared_bounds(use.comparison)
    speed = wording.headline_speed(use.comparison, use.cell.cell.words_in_sentence)
    return f": {speed} (95 % CI {bounds}, {pairs})"


def advise(
    results: Sequence[ScenarioResult], races: Mapping[tuple[str, str], RaceDecision] | None = None
) -> tuple[Advice, ...]:
    """What to do in each scenario; it does not depend on the other scenarios.

    Args:
        races: What races decided, by the scenario's name and the host's id.
    """
    return tuple(
        _advise(result, (races or {}).get((result.scenario.name, result.run.host.id)))
        for result in results
    )


def headline(advices: Iterable[Advice]) -> Advice | None:
    """The scenario with the largest effect that somebody can act on; None without any.

    What is slower because its parameters ask for more work is no such effect.
    """
    candidates = [advice for advice in advices if advice.largest and advice.largest.is_actionable]
    return max(
        candidates,
        key=lambda advice: advice.largest.least_ratio if advice.largest else 1.0,
        default=None,
    )


def greatest_difference(advices: Iterable[Advice]) -> float | None:
    """How many times faster or slower any alternative can be than its baseline, at most.

    It is the furthest end of the intervals of all comparisons; None without comparisons, or if one
    of them has no interval.
    """
    intervals = [
        pair.comparison.interval
        for advice in advices
        for pair in advice.result.ranked
        if not pair.is_itself
    ]
    ends = [
        max(interval.high, 1 / interval.low) if interval and interval.low > 0 else math.inf
        for interval in intervals
    ]
    return None if not ends or math.inf in ends else max(ends)


def library(cell: Cell) -> str:
    """The name of a cell's library: its environment, or its framework if that is an axis."""
    return cell.framework if "framework" in dict(cell.axes) else cell.environment


def _is_work(axis: str) -> bool:
    """Whether an axis changes what is computed, by what or by how many, not how it is run."""
    return axis not in SETTINGS or axis in {*_LIBRARY_AXES, "workers", "gpus", "commit"}


def is_default(cell: Cell) -> bool:
    """Whether a cell sets nothing: unbound, with the framework's own threads and variables."""
    return cell.binding == Binding() and cell.threads == Threads() and not cell.env


def is_oversubscribed(cell: CellResult) -> bool:
    """Whether a cell requests more threads for a process than the process has CPUs."""
    placement = cell.placement
    if placement is None:
        return False
    threads = max(placement.threads or 0, placement.omp or 0)
    return any(threads > len(slot.cpus) for slot in placement.slots)


def _advise(result: ScenarioResult, race: RaceDecision | None) -> Advice:
    ranked = _effects(result)
    decided = [effect for effect in ranked if effect.cell.cell.id in result.decided]
    effects = [effect for effect in decided if effect.may_lead]
    between = [*_between_libraries(result)]
    significant = suite_findings([effect.comparison for effect in between])
    libraries = [
        effect
        for effect, is_found in zip(between, significant, strict=True)
        if is_found and effect.may_lead
    ]
    winner = result.winner
    faster = [
        *(effect for effect in effects if winner and effect.cell.cell.key == winner.cell.cell.key),
        *libraries,
    ]
    likely = _likely(effects)
    slower = [effect for effect in likely if not effect.is_faster and effect.is_actionable]
    use = _largest(faster)
    is_promising = any(effect.is_faster for effect in decided if effect not in effects)
    kind: AdviceKind = "measure"
    if use is not None:
        kind = "use"
    elif (not is_promising and _keeps_baseline(ranked)) or (not ranked and _is_complete(result)):
        kind = "keep"
    leader = result.leader
    seen = unconfirmed(result) if use is None and race is None else None
    command = seen.command if seen else _more_data(result)
    return Advice(
        result=result,
        kind=kind,
        seen=seen,
        largest=_largest([*(likely or effects), *libraries]),
        use=use,
        avoid=_largest(slower),
        best=_effect(result, leader) if leader else None,
        set=what_to_set(use.cell, use.other) if use and race is None else None,
        command=command if kind == "measure" and race is None else None,
        race=race,
    )


# What is smaller than this in one launch each, or would so often be seen by chance, is not worth a
# sentence.
_SEEN_ONCE_RATIO = 1.2
_SEEN_BY_CHANCE = 0.3
# So many launches at least confirm a difference that looks large, if nothing tells how many.
_CONFIRMING = 6


def unconfirmed(result: ScenarioResult) -> Unconfirmed | None:
    """The largest difference in a scenario where nothing is decided; None if none was seen.

    What may as well be noise is none. Comparisons of commits have sentences of their own.
    """
    ranked = _effects(result)
    if result.decided or _keeps_baseline(ranked) or compared_axis(result.source.document):
        return None
    effects = [
        effect
        for effect in ranked
        if effect.is_actionable and _is_seen(effect, result.measure.margin)
    ]
    if not effects:
        return None
    effect = max(_likely(effects) or effects, key=lambda effect: effect.distance)
    sides = effect.cell, effect.other
    # If nothing tells how many are needed, fewer than those that did not decide are too few.
    undecided = min(len(side.summary.launches) for side in sides)
    likely_enough = max(_CONFIRMING, result.measure.launches.min, undecided)
    needed = effect.comparison.launches_needed or likely_enough
    launches = min(needed, suggested_commands.MOST_LAUNCHES)
    line = f"{suggested_commands.cell_command(result, effect.cell).line} --launches {launches}"
    return Unconfirmed(
        effect=effect,
        reason=result.open_reason(effect.cell) or "correction",
        cause=cause_of(result, effect.slower, clause=True),
        launches=launches,
        command=suggested_commands.CommandLine(line),
        duration_s=launches * sum(time_of_launch(side.launches) or 0.0 for side in sides),
    )


def _keeps_baseline(effects: Iterable[Effect]) -> bool:
    """Whether an alternative was decided not to be faster."""
    return any(effect.comparison.verdict in {"slower", "equivalent"} for effect in effects)


def _likely(effects: Iterable[Effect]) -> list[Effect]:
    # Nobody arrives at more threads than CPUs by accident: such a cell shows what it would cost.
    return [effect for effect in effects if effect.is_faster or not is_oversubscribed(effect.cell)]


def _is_seen(effect: Effect, margin: float) -> bool:
    p_value = effect.comparison.p_value
    if p_value is None:
        return effect.distance >= math.log(_SEEN_ONCE_RATIO)
    return effect.distance > math.log1p(margin) and p_value <= _SEEN_BY_CHANCE


def cause_of(result: ScenarioResult, cell: CellResult, *, clause: bool = False) -> str:
    """The likely cause of a cell's time, which diagnosis found; empty without one.

    Args:
        result: The cell's scenario.
        clause: Whether to leave out what it costs, for the end of a sentence.
    """
    key = cell.cell.key
    found = (each.what for each in findings(result) if key in {own.key for own in each.cells[:1]})
    what = next(found, "")
    return what.partition(": ")[0].rstrip(".") if clause else what


def _largest(effects: Sequence[Effect]) -> Effect | None:
    return max(effects, key=lambda effect: effect.least_ratio, default=None)


def _is_complete(result: ScenarioResult) -> bool:
    """Whether each configuration was measured, cannot run here, or is the same as another."""
    known = {
        cell.key
        for measured in result.cells
        if measured.is_measured or measured.summary.count("skipped")
        for cell in (measured.cell, *measured.duplicates)
    }
    return any(cell.is_measured for cell in result.cells) and all(
        cell.key in known for cell in result.planned
    )


def _effects(result: ScenarioResult) -> list[Effect]:
    """The comparisons that are not of a cell with itself."""
    return [_effect(result, pair) for pair in result.ranked if not pair.is_itself]


def _effect(result: ScenarioResult, pair: BaselineComparison) -> Effect:
    return Effect(
        cell=pair.cell,
        other=pair.baseline,
        comparison=pair.comparison,
        title=title_of(pair.cell.cell, varying_axes(result.baselines)),
    )


def _between_libraries(result: ScenarioResult) -> Iterator[Effect]:
    """Comparisons of the baselines of two libraries that do the same work."""
    baselines = {cell.key for cell in result.baselines}
    cells = [cell for cell in result.cells if cell.cell.key in baselines]
    axes = varying_axes([cell.cell for cell in cells])
    for one, other in combinations(cells, 2):
        differing = {
            axis
            for axis in axes
            if dict(one.cell.axes).get(axis) != dict(other.cell.axes).get(axis)
        }
        if not differing or not differing <= _LIBRARY_AXES:
            continue
        comparison = compare_cells(result, one.cell, other.cell)
        first, second = one, other
        if comparison is not None and comparison.verdict == "slower":
            first, second = other, one
            comparison = compare_cells(result, other.cell, one.cell)
        if comparison is not None:
            yield Effect(
                cell=first,
                other=second,
                comparison=comparison,
                title=title_of(one.cell, [axis for axis in axes if axis not in _LIBRARY_AXES]),
            )


def _more_data(result: ScenarioResult) -> suggested_commands.CommandLine:
    """The command that is most likely to decide what the result leaves open."""
    run = result.run
    if compared_axis(result.source.document) is not None:
        if result.incomplete is None:
            return suggested_commands.reproduce_command(result, ())
        return suggested_commands.CommandLine(
            f"{suggested_commands.original_command(run).line} --resume"
        )
    if result.incomplete is None and run.profile is None and result.ranked:
        return suggested_commands.CommandLine(
            shlex.join(("corebound", "run", result.source.path, "--favour-doubtful"))
        )
    words = ["corebound", "run", result.source.path]
    if not any(cell.is_measured for cell in result.cells):
        # The same again: all of it may take hours where the profile takes minutes.
        words += ["--profile", run.profile] if run.profile is not None else []
        words += [word for key in run.only for word in ("--only", key)]
    return suggested_commands.CommandLine(shlex.join(words))
