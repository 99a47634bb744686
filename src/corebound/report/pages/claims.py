"""The page of published claims, each with the local result and whether it reproduces."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from corebound.analysis.commands import CommandLine, reproduce_command
from corebound.analysis.scenario_result import ScenarioResult, compare_cells
from corebound.analysis.selection import title_of, varying_axes
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
    to_decide,
)
from corebound.machine.identity import Host
from corebound.report.charts.axis import Axis
from corebound.report.charts.intervals import IntervalPlot
from corebound.report.elements import Head, Hero, Tick
from corebound.report.scenario.cells import comparison_axis, ratio_ticks
from corebound.scenario.cell import Cell
from corebound.scenario.models import Claim
from corebound.scenario.select import claim_pairs
from corebound.stats.comparison import Comparison
from corebound.units import ratio

Judgement = Literal["reproduces", "does not", "undecided", "not measured", "needs"]

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


class JudgedClaim(Struct, frozen=True, kw_only=True):
    """The result of one claim for one pair of cells.

    Attributes:
        claim: The published claim.
        faster: The cell that is claimed to be faster; None if the scenario has no such pair.
        than: The cell that it is claimed to be faster than; None likewise.
        pair: What distinguishes this pair from the claim's others; empty for a single pair.
        comparison: The first cell against the second; None if they cannot be compared.
        judgement: Whether the claim reproduces.
        needs: What the claim needs and the host lacks: `needs SMT`; empty if nothing.
        detail: The reason, or the difference from the claimed size; may be empty.
    """

    claim: Claim
    faster: Cell | None
    than: Cell | None
    pair: str
    comparison: Comparison | None
    judgement: Judgement
    needs: str
    detail: str


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


def judge_claims(study: ScenarioResult) -> tuple[JudgedClaim, ...]:
    """The results of a scenario's claims, one for each pair of cells that a claim covers."""
    return tuple(one for claim in study.scenario.claims for one in _judge_claim(study, claim))


def _judge_claim(study: ScenarioResult, claim: Claim) -> Iterator[JudgedClaim]:
    needs, why = _missing_need(claim, study.run.host)
    pairs = claim_pairs(claim, study.planned)
    if needs or not pairs:
        yield JudgedClaim(
            claim=claim,
            faster=None,
            than=None,
            pair="",
            comparison=None,
            judgement="needs" if needs else "not measured",
            needs=needs,
            detail=why if needs else "no cell that was asked for fits it",
        )
        return
    axes = varying_axes([one for one, _ in pairs])
    for one, two in pairs:
        comparison = compare_cells(study, one, two)
        judgement, detail = _judge(claim, comparison)
        yield JudgedClaim(
            claim=claim,
            faster=one,
            than=two,
            pair=title_of(one, axes),
            comparison=comparison,
            judgement=judgement,
            needs="",
            detail=detail,
        )


def _judge(claim: Claim, comparison: Comparison | None) -> tuple[Judgement, str]:
    if comparison is None:
        return "not measured", "one of the two cells has no valid launch on this host"
    if comparison.verdict == "undecided":
        return "undecided", to_decide(comparison.launches_needed)
    if comparison.verdict != "faster":
        slower = comparison.verdict == "slower"
        return "does not", "it is slower here" if slower else "no difference here"
    published, interval = claim.published_ratio, comparison.interval
    detail = ""
    if published and interval and not interval.contains(published):
        detail = "the effect is smaller here" if published > interval.high else "and larger here"
    return "reproduces", detail


def claim_rows(study: ScenarioResult) -> tuple[ClaimRow, ...]:
    """The claims of a scenario as its own page shows them."""
    return tuple(_row(study, one) for one in judge_claims(study))


def _row(study: ScenarioResult, one: JudgedClaim) -> ClaimRow:
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


def _command(study: ScenarioResult, one: JudgedClaim) -> CommandLine:
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
    every = [one for _, found in claimed for one in found]
    compared = [one.comparison for one in every if one.comparison is not None]
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
        hero=_hero(claimed, every),
        axis=axis,
        ticks=ratio_ticks(axis) if axis else (),
        groups=tuple(_group(study, found) for study, found in ordered),
    )


def _hero(
    claimed: Sequence[tuple[ScenarioResult, Sequence[JudgedClaim]]], every: Sequence[JudgedClaim]
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


def _group(study: ScenarioResult, found: Sequence[JudgedClaim]) -> ClaimsGroup:
    return ClaimsGroup(
        name=study.scenario.name,
        title=study.scenario.title,
        address=f"scenario/{study.scenario.name}.html#claims",
        source=study.scenario.source or "",
        rows=tuple((_row(study, one), _plot(one, margin=study.measure.margin)) for one in found),
    )


def _plot(one: JudgedClaim, *, margin: float) -> IntervalPlot | None:
    comparison = one.comparison
    if comparison is None or one.faster is None:
        return None
    return IntervalPlot(
        mode=mode_class(one.faster.binding.mode),
        estimate=comparison.speedup_ratio,
        low=comparison.interval.low if comparison.interval else None,
        high=comparison.interval.high if comparison.interval else None,
        dots=tuple(value for _, value in comparison.per_block),
        margin=margin,
    )


def _missing_need(claim: Claim, host: Host) -> tuple[str, str]:
    """What the claim needs and the host lacks, and why; empty if nothing."""
    needs, topology = claim.needs, host.topology
    if needs.smt is not None and needs.smt != topology.has_smt:
        if needs.smt:
            return "needs SMT", "which this host does not have"
        return "needs no SMT", "which this host has"
    nodes = sum(1 for node in topology.nodes if node.cpus)
    if needs.nodes is not None and nodes < needs.nodes:
        return f"needs {count(needs.nodes, 'node')}", f"this host has {nodes} with CPUs"
    cores = len({cpu.core for cpu in topology.cpus})
    if needs.cores is not None and cores < needs.cores:
        return f"needs {count(needs.cores, 'core')}", f"this host has {cores}"
    if needs.npu:
        return "needs an NPU", "which cells here do not use"
    return ("", "") if needs.gpu is None else _missing_gpu(host, wanted=needs.gpu)


def _missing_gpu(host: Host, *, wanted: bool) -> tuple[str, str]:
    if host.gpus is None:
        return "needs a look for GPUs", "which this record was made without"
    if wanted == bool(host.gpus):
        return "", ""
    if wanted:
        return "needs a GPU", "which this host does not have"
    return "needs a host without a GPU", ""
