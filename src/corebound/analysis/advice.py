"""What to set for each scenario, and the largest effect that was measured.

An effect is a significant difference between two configurations that do the same work, in either
direction. The largest is the one that is furthest from 1 at the end of its interval nearest to 1,
so that an estimate from a few noisy launches does not come first.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from corebound.analysis import suggested_commands, wording
from corebound.analysis.commit_comparison import sides_verdict
from corebound.analysis.effects import (
    Effect,
    effect_of,
    effects_between_libraries,
    effects_of,
    keeps_baseline,
    likely_effects,
)
from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.unconfirmed import Unconfirmed, unconfirmed
from corebound.analysis.what_to_set import WhatToSet, what_to_set
from corebound.scenario.cell import Cell
from corebound.scenario.compared_axis import compared_axis
from corebound.stats.multiplicity import suite_findings

AdviceKind = Literal["use", "keep", "measure"]


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


def _advise(result: ScenarioResult, race: RaceDecision | None) -> Advice:
    ranked = effects_of(result)
    decided = [effect for effect in ranked if effect.cell.cell.id in result.decided]
    effects = [effect for effect in decided if effect.may_lead]
    between = [*effects_between_libraries(result)]
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
    likely = likely_effects(effects)
    slower = [effect for effect in likely if not effect.is_faster and effect.is_actionable]
    use = _largest(faster)
    is_promising = any(effect.is_faster for effect in decided if effect not in effects)
    kind: AdviceKind = "measure"
    if use is not None:
        kind = "use"
    elif (not is_promising and keeps_baseline(ranked)) or (not ranked and _is_complete(result)):
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
        best=effect_of(result, leader) if leader else None,
        set=what_to_set(use.cell, use.other) if use and race is None else None,
        command=command if kind == "measure" and race is None else None,
        race=race,
    )


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


def _more_data(result: ScenarioResult) -> suggested_commands.CommandLine:
    """The command that is most likely to decide what the result leaves open."""
    run = result.run
    if compared_axis(result.source.document) is not None:
        if result.incomplete is None:
            return suggested_commands.reproduce_command(result, ())
        return suggested_commands.CommandLine(
            f"{suggested_commands.original_command(run).line} --resume"
        )
    words = ["corebound", "run", result.source.path]
    if result.incomplete is None and run.profile is None and result.ranked:
        return suggested_commands.CommandLine.of(*words, "--favour-doubtful")
    if not any(cell.is_measured for cell in result.cells):
        # The same again: all of it may take hours where the profile takes minutes.
        words += ["--profile", run.profile] if run.profile is not None else []
        words += [word for key in run.only for word in ("--only", key)]
    return suggested_commands.CommandLine.of(*words)
