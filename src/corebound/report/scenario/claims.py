"""The published claims of a scenario, each with the local result and whether it reproduces."""

from __future__ import annotations

import shlex

from msgspec import Struct

from corebound.analysis.claims import ClaimResult, Judgement, judge_claims
from corebound.analysis.commands import CommandLine, reproduce_command
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.wording import VerdictWord
from corebound.report.charts.intervals import IntervalPlot, comparison_plot
from corebound.scenario.matrix import claim_pairs

_WORDS: dict[Judgement, VerdictWord] = {
    "reproduces": VerdictWord(tone="good", sign="✓", word="reproduces"),
    "does not": VerdictWord(tone="bad", sign="✗", word="does not"),
    "inconclusive": VerdictWord(tone="plain", sign="?", word="inconclusive"),
    "not measured": VerdictWord(tone="plain", sign="–", word="not measured"),
}


class ClaimRow(Struct, frozen=True, kw_only=True):
    """A published claim with the local result.

    Attributes:
        plot: The comparison of its cells; None if they cannot be compared.
        command: Measures both cells.
    """

    result: ClaimResult
    plot: IntervalPlot | None
    command: CommandLine

    @property
    def verdict(self) -> VerdictWord:
        """Whether it reproduces, or what the host lacks."""
        if self.result.judgement == "needs":
            return VerdictWord(tone="plain", sign="–", word=self.result.needs)
        return _WORDS[self.result.judgement]


def claim_rows(scenario_result: ScenarioResult) -> tuple[ClaimRow, ...]:
    """The claims of a scenario as its own page shows them."""
    return tuple(
        ClaimRow(
            result=result,
            plot=comparison_plot(result.comparison, margin=scenario_result.measure.margin)
            if result.comparison and result.faster
            else None,
            command=_command(scenario_result, result),
        )
        for result in judge_claims(scenario_result)
    )


def _command(scenario_result: ScenarioResult, result: ClaimResult) -> CommandLine:
    """The command that measures both sides, on this host or on one that meets the claim's needs.

    If the run's profile leaves the cells out, it measures the whole scenario without a profile.
    """
    pairs = [(result.faster, result.than)] if result.faster and result.than else []
    pairs = pairs or [*claim_pairs(result.claim, scenario_result.planned)]
    cells = dict.fromkeys(cell for faster, than in pairs for cell in (than, faster))
    if not cells:
        return CommandLine(shlex.join(("corebound", "run", scenario_result.source.path)))
    return reproduce_command(scenario_result, tuple(cells))
