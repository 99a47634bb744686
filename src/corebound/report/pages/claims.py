"""The page of published claims, each with the local result and whether it reproduces."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from msgspec import Struct

from corebound.analysis.claims import ClaimResult, Judgement, judge_claims
from corebound.analysis.commands import CommandLine, reproduce_command
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.wording import (
    Text,
    TextSpan,
    VerdictWord,
    compared_bounds,
    count,
    day,
    mode_class,
    rich,
    speedup,
)
from corebound.report.charts.axis import Axis
from corebound.report.charts.intervals import (
    IntervalPlot,
    comparison_axis,
    comparison_plot,
    ratio_ticks,
)
from corebound.report.elements import Head, Hero, Tick
from corebound.scenario.select import claim_pairs
from corebound.units import ratio

_WORDS: dict[Judgement, VerdictWord] = {
    "reproduces": VerdictWord(tone="good", sign="✓", word="reproduces"),
    "does not": VerdictWord(tone="bad", sign="✗", word="does not"),
    "undecided": VerdictWord(tone="plain", sign="?", word="undecided"),
    "not measured": VerdictWord(tone="plain", sign="–", word="not measured"),
}


class ClaimRow(Struct, frozen=True, kw_only=True):
    """A published claim with the local result; `command` may be empty."""

    says: str
    pair: str
    published: str
    measured: str
    interval: str
    verdict: VerdictWord
    detail: str
    command: CommandLine


class ClaimsGroup(Struct, frozen=True, kw_only=True):
    """The claims of one source, by scenario."""

    name: str
    title: str
    address: str
    source: str
    rows: tuple[tuple[ClaimRow, IntervalPlot | None], ...]


class ClaimsPage(Struct, frozen=True, kw_only=True):
    """Every published claim; `axis` is None if nothing could be compared."""

    head: Head
    hero: Hero
    axis: Axis | None
    ticks: tuple[Tick, ...]
    groups: tuple[ClaimsGroup, ...]


def claim_rows(study: ScenarioResult) -> tuple[ClaimRow, ...]:
    """The claims of a scenario as its own page shows them."""
    return tuple(_row(study, one) for one in judge_claims(study))


def _row(study: ScenarioResult, one: ClaimResult) -> ClaimRow:
    comparison = one.comparison
    if one.judgement == "needs":
        verdict = VerdictWord(tone="plain", sign="–", word=one.needs)
    else:
        verdict = _WORDS[one.judgement]
    return ClaimRow(
        says=one.claim.says,
        pair=one.pair,
        published=ratio(one.claim.published_ratio) if one.claim.published_ratio else "–",
        measured=speedup(comparison.speedup_ratio) if comparison else "–",
        interval=compared_bounds(comparison),
        verdict=verdict,
        detail=one.detail,
        command=_command(study, one),
    )


def _command(study: ScenarioResult, one: ClaimResult) -> CommandLine:
    """The command that measures both sides, on this host or on one that meets the claim's needs.

    If the run's profile leaves the cells out, it measures the whole scenario without a profile.
    """
    pairs = [(one.faster, one.than)] if one.faster and one.than else []
    pairs = pairs or [*claim_pairs(one.claim, study.planned)]
    cells = dict.fromkeys(cell for faster, than in pairs for cell in (than, faster))
    if not cells:
        return CommandLine(shlex.join(("corebound", "run", study.source.path)))
    return reproduce_command(study, tuple(cells))


def claims_page(studies: Sequence[ScenarioResult], *, now: str) -> ClaimsPage | None:
    """Build the page of all claims, by source; None if no scenario has any.

    Args:
        studies: One result per scenario.
        now: ISO timestamp of the page.
    """
    claimed = [(study, found) for study in studies if (found := judge_claims(study))]
    if not claimed:
        return None
    all_claims = [one for _, found in claimed for one in found]
    compared = [one.comparison for one in all_claims if one.comparison is not None]
    margin = max(study.measure.margin for study, _ in claimed)
    axis = comparison_axis(compared, margin=margin) if compared else None
    ordered = sorted(claimed, key=lambda pair: _source_first(pair[0]))
    return ClaimsPage(
        head=Head(
            title="Corebound: claims",
            description="What studies published, beside what was measured on this host.",
            root="",
            here="Claims",
            made=f"Page made {day(now)}.",
        ),
        hero=_hero(claimed, all_claims),
        axis=axis,
        ticks=ratio_ticks(axis) if axis else (),
        groups=tuple(_group(study, found) for study, found in ordered),
    )


def _hero(
    claimed: Sequence[tuple[ScenarioResult, Sequence[ClaimResult]]], every: Sequence[ClaimResult]
) -> Hero:
    counts = {word: sum(one.judgement == word for one in every) for word in (*_WORDS, "needs")}
    tried = counts["reproduces"] + counts["does not"]
    verdict: Text
    if tried:
        held = TextSpan(f"{counts['reproduces']} of {tried}", "strong")
        verdict = rich(held, " published claims that could be decided here reproduce.")
    else:
        verdict = rich("No published claim could be decided here.")
    rest = {
        "undecided": counts["undecided"],
        "not measured": counts["not measured"],
        "need another host": counts["needs"],
    }
    said = ", ".join(f"{number} {word}" for word, number in rest.items() if number)
    hosts = list(dict.fromkeys(study.run.host.name for study, _ in claimed))
    where = hosts[0] if len(hosts) == 1 else count(len(hosts), "host")
    return Hero(
        title="Claims",
        question="Does what was published hold on this host?",
        context="",
        verdict=verdict,
        support=rich(f"On {where}. {f'Beside them: {said}.' if said else ''}".strip()),
        flags=(),
    )


def _source_first(study: ScenarioResult) -> tuple[bool, str, str]:
    """The sort key: sources by title, then claims without a source."""
    source = study.scenario.source
    return source is None, source or "", study.scenario.name


def _group(study: ScenarioResult, found: Sequence[ClaimResult]) -> ClaimsGroup:
    return ClaimsGroup(
        name=study.scenario.name,
        title=study.scenario.title,
        address=f"scenario/{study.scenario.name}.html#claims",
        source=study.scenario.source or "",
        rows=tuple((_row(study, one), _plot(one, margin=study.measure.margin)) for one in found),
    )


def _plot(one: ClaimResult, *, margin: float) -> IntervalPlot | None:
    comparison = one.comparison
    if comparison is None or one.faster is None:
        return None
    return comparison_plot(comparison, mode=mode_class(one.faster.binding.mode), margin=margin)
