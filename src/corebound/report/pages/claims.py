"""The page of published claims, each with the local result and whether it reproduces."""

from collections.abc import Sequence

from corebound.analysis.claims import ClaimResult, Judgement, claims_in_words, judge_claims
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.suggested_commands import CommandLine, reproduce_command
from corebound.analysis.wording import VerdictWord, capital, count, rich
from corebound.report.charts.intervals import (
    NARROW_COLUMN,
    comparison_axis,
    effect_ticks,
)
from corebound.report.elements import Head, Hero, Page
from corebound.scenario.matrix import claim_pairs

ClaimsGroup = tuple[ScenarioResult, tuple[ClaimResult, ...]]


def claims_page(scenario_results: Sequence[ScenarioResult]) -> Page | None:
    """Build the page of all claims, by source; None if no scenario has any."""
    claimed = [
        (scenario_result, judged)
        for scenario_result in scenario_results
        if (judged := judge_claims(scenario_result))
    ]
    if not claimed:
        return None
    results = [result for _, judged in claimed for result in judged]
    compared = [result.comparison for result in results if result.comparison is not None]
    margin = max(scenario_result.measure.margin for scenario_result, _ in claimed)
    axis = comparison_axis(compared, margin=margin) if compared else None
    ordered = sorted(claimed, key=lambda pair: _source_first(pair[0]))
    return Page(
        head=Head(
            title="Corebound: claims",
            description="Published claims and the results on this host.",
        ),
        hero=_hero([scenario_result for scenario_result, _ in claimed], results),
        axis=axis,
        ticks=effect_ticks(axis, NARROW_COLUMN) if axis else (),
        groups=_groups(ordered, has_result=True),
        others=_groups(ordered, has_result=False),
    )


_WITHOUT_RESULT = ("not measured", "needs")


def _groups(claimed: Sequence[ClaimsGroup], *, has_result: bool) -> tuple[ClaimsGroup, ...]:
    """The scenarios with claims that have a result here, or that have none, with these claims."""
    groups = (
        (
            scenario_result,
            tuple(
                result
                for result in judged
                if (result.judgement not in _WITHOUT_RESULT) is has_result
            ),
        )
        for scenario_result, judged in claimed
    )
    return tuple(group for group in groups if group[1])


def _hero(scenario_results: Sequence[ScenarioResult], results: Sequence[ClaimResult]) -> Hero:
    says, others = claims_in_words(results)
    hosts = list(
        dict.fromkeys(scenario_result.run.host.name for scenario_result in scenario_results)
    )
    location = hosts[0] if len(hosts) == 1 else count(len(hosts), "host")
    return Hero(
        title="Claims",
        question="Do published claims hold on this host?",
        verdict=rich(f"{says}."),
        support=rich(f"On {location}. {capital(others)}{'.' if others else ''}".strip()),
    )


def _source_first(result: ScenarioResult) -> tuple[bool, str, str]:
    """The sort key: sources by title, then claims without a source."""
    source = result.scenario.source
    return source is None, source or "", result.scenario.name


_WORDS: dict[Judgement, VerdictWord] = {
    "reproduces": VerdictWord(tone="good", sign="✓", word="reproduces"),
    "does not": VerdictWord(tone="bad", sign="✗", word="does not"),
    "inconclusive": VerdictWord(tone="plain", sign="?", word="inconclusive"),
    "not measured": VerdictWord(tone="plain", sign="–", word="not measured"),
}


def claim_verdict(result: ClaimResult) -> VerdictWord:
    """Whether a claim reproduces, or what the host lacks."""
    if result.judgement == "needs":
        return VerdictWord(tone="plain", sign="–", word=result.needs)
    return _WORDS[result.judgement]


def claim_command(result: ClaimResult, scenario_result: ScenarioResult) -> CommandLine:
    """The command that measures both sides, on this host or on one that meets the claim's needs.

    If the run's profile leaves the cells out, it measures the whole scenario without a profile.
    """
    pairs = [(result.faster, result.than)] if result.faster and result.than else []
    pairs = pairs or [*claim_pairs(result.claim, scenario_result.planned)]
    cells = dict.fromkeys(cell for faster, than in pairs for cell in (than, faster))
    if not cells:
        return CommandLine.of("corebound", "run", scenario_result.source.path)
    return reproduce_command(scenario_result, tuple(cells))
