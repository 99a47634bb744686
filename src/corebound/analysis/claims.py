"""Compares published claims with what was measured: which of them reproduce on this host."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.effects import beside_others
from corebound.analysis.scenario_result import CellResult, ScenarioResult, compare_cells
from corebound.analysis.selection import title_of, varying_axes
from corebound.analysis.wording import count, open_note
from corebound.machine.identity import Host
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import claim_pairs
from corebound.scenario.models import Claim
from corebound.stats.comparison import Comparison
from corebound.stats.multiplicity import suite_findings

Judgement = Literal["reproduces", "does not", "inconclusive", "not measured", "needs"]


class ClaimResult(Struct, frozen=True, kw_only=True):
    """The result of one claim for one pair of cells.

    Attributes:
        faster: The cell that is claimed to be faster; None if the scenario has no such pair.
        than: The cell that it is claimed to be faster than; None likewise.
        pair: What distinguishes this pair from the claim's others; empty for a single pair.
        comparison: The first cell against the second; None if they cannot be compared.
        needs: What the claim needs and the host lacks: `needs SMT`; empty if nothing.
        detail: The reason, or the difference from the claimed size, and when it holds; or empty.
    """

    claim: Claim
    judgement: Judgement
    faster: Cell | None = None
    than: Cell | None = None
    pair: str = ""
    comparison: Comparison | None = None
    needs: str = ""
    detail: str


def judge_claims(result: ScenarioResult) -> tuple[ClaimResult, ...]:
    """The results of a scenario's claims, one for each pair of cells that a claim covers.

    A difference counts only if it is decided after the correction for many comparisons: that of the
    run for a cell and its baseline, that of the scenario's claims for other pairs.
    """
    judged = [
        claim_result
        for claim in result.scenario.claims
        for claim_result in _judge_claim(result, claim)
    ]
    # The cell that a claim compares with its own baseline; None for other pairs.
    own = [_own_cell(result.find(each.faster), result.find(each.than), result) for each in judged]
    pairs = zip(judged, own, strict=True)
    others = suite_findings([None if cell else each.comparison for each, cell in pairs])
    return tuple(
        replace(each, judgement="inconclusive", detail="not significant after correction")
        if each.comparison is not None
        and each.comparison.verdict in {"faster", "slower"}
        and not (is_decided or cell in result.decided)
        else each
        for each, cell, is_decided in zip(judged, own, others, strict=True)
    )


def claims_in_words(results: Sequence[ClaimResult]) -> tuple[str, str]:
    """How many claims reproduce here, and what is known of the others, which may be nothing.

    `1 of 4 published claims reproduces here` and `1 inconclusive, 2 not testable`.

    Args:
        results: The results of the claims of some scenarios, at least one.
    """
    counts = Counter(result.judgement for result in results)
    untested = counts["not measured"] + counts["needs"]
    every = count(len(results), "published claim")
    if untested == len(results):
        needs = {result.needs for result in results if result.needs}
        return f"{every} not tested", ", ".join(sorted(needs)) or "not measured yet"
    held, failed = counts["reproduces"], counts["does not"]
    rest = {
        f"{'does' if failed == 1 else 'do'} not": failed,
        "inconclusive": counts["inconclusive"],
        "not testable": untested,
    }
    return (
        f"{held:,} of {every} {'reproduces' if held == 1 else 'reproduce'} here",
        ", ".join(f"{number:,} {word}" for word, number in rest.items() if number),
    )


def _own_cell(
    one: CellResult | None, other: CellResult | None, result: ScenarioResult
) -> str | None:
    for cell, than in ((one, other), (other, one)):
        if cell is not None and than is not None and result.find(cell.baseline) is than:
            return cell.cell.id
    return None


def _judge_claim(result: ScenarioResult, claim: Claim) -> Iterator[ClaimResult]:
    needs, why = _missing_need(claim, result.run.host)
    # Pairs of duplicates have one result, which counts once.
    pair_of_measured: dict[tuple[str, str], tuple[Cell, Cell]] = {}
    for faster, slower in claim_pairs(claim, result.planned):
        keys = result.run.measured_key(faster), result.run.measured_key(slower)
        pair_of_measured.setdefault(keys, (faster, slower))
    if needs or not pair_of_measured:
        yield ClaimResult(
            claim=claim,
            judgement="needs" if needs else "not measured",
            needs=needs,
            detail=why if needs else "no selected cell matches it",
        )
        return
    axes = varying_axes([faster for faster, _ in pair_of_measured.values()])
    for (measured, measured_slower), (faster, slower) in pair_of_measured.items():
        comparison = compare_cells(result, faster, slower)
        judgement, detail = _judge(claim, comparison)
        condition = _condition(comparison, result.find(faster), result.find(slower))
        detail = f"{detail} {condition}".strip()
        if measured == measured_slower:
            detail = "both are the same on this host"
        yield ClaimResult(
            claim=claim,
            faster=faster,
            than=slower,
            pair=title_of(faster, axes),
            comparison=comparison,
            judgement=judgement,
            detail=detail,
        )


def _judge(claim: Claim, comparison: Comparison | None) -> tuple[Judgement, str]:
    if comparison is None:
        return "not measured", "one of the two cells has no valid launch on this host"
    if comparison.verdict == "inconclusive":
        return "inconclusive", open_note(comparison)
    if comparison.verdict != "faster":
        slower = comparison.verdict == "slower"
        return "does not", "it is slower here" if slower else "no difference here"
    published, interval = claim.published_ratio, comparison.interval
    detail = ""
    if published and interval and not interval.contains(published):
        detail = "the effect is smaller here" if published > interval.high else "and larger here"
    return "reproduces", detail


def _condition(
    comparison: Comparison | None, faster: CellResult | None, slower: CellResult | None
) -> str:
    """When a decided claim holds or not, if others disturbed the slower side; else empty."""
    if comparison is None or comparison.verdict == "inconclusive":
        return ""
    side = faster if comparison.verdict == "slower" else slower
    return beside_others(side.summary) if side is not None else ""


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
        return "needs information about GPUs", "which this record does not contain"
    if wanted == bool(host.gpus):
        return "", ""
    if wanted:
        return "needs a GPU", "which this host does not have"
    return "needs a host without a GPU", ""
