"""The tables behind the charts: all cells, the claims, every launch."""

from __future__ import annotations

from corebound.model.record import Launch
from corebound.model.scenario import Claim
from corebound.model.topology import Topology
from corebound.planning.expand import claim_pairs
from corebound.report.view.command import reproduce_command
from corebound.report.view.intervals import twin_note
from corebound.report.view.page import (
    CellRow,
    CellTable,
    ClaimRow,
    LaunchRow,
    Tone,
    VerdictWord,
)
from corebound.report.view.study import CellStudy, Study, compare_cells
from corebound.report.view.throughput import throughput
from corebound.report.view.warmup import steady_words
from corebound.report.view.why import median_migrations
from corebound.report.view.words import (
    NOT_COMPARED,
    NOT_MEASURED,
    REFERENCE,
    axis_value,
    bounds,
    count,
    full_name,
    mode_class,
    speedup,
    verdict_word,
)
from corebound.stats.compare import Comparison
from corebound.units import duration, percent, ratio, significant, time_unit

# A page carries the end of a log, where the cause is; the record has it all.
_LOG_CHARACTERS = 2_000

# An end this many units away says that two launches can tell next to nothing.
_MOST_SHOWN = 1e9

_TONES: dict[str, Tone] = {"ok": "good", "skipped": "plain"}


def cell_table(study: Study) -> CellTable:
    """Every cell's figures, in the order of the file and in one unit of time."""
    axes = tuple(dict.fromkeys(axis for cell in study.cells for axis, _ in cell.cell.axes))
    baseline = study.baseline
    scale = baseline.summary.median_ns if baseline and baseline.summary.median_ns else None
    if scale is None:
        scale = next((one.summary.median_ns for one in study.cells if one.is_measured), None)
    length_ns, unit = time_unit(scale or 1e6)
    rows = tuple(_cell_row(study, cell, axes, length_ns) for cell in study.cells)
    return CellTable(
        lead=_cells_lead(study),
        axes=tuple(axis.removeprefix("parameters.").replace("_", " ") for axis in axes),
        unit=unit,
        throughput=any(row.throughput for row in rows),
        rows=rows,
    )


def _cells_lead(study: Study) -> str:
    return (
        f"{count(len(study.cells), 'cell')}. Median: geometric mean over launches of each launch's"
        " median iteration, with its 95 % interval. p99 and CPU time: median over launches; p99"
        " needs 100 iterations. Spread: standard deviation of the launches' medians."
        " Migrations: median a launch."
    )


def _cell_row(study: Study, cell: CellStudy, axes: tuple[str, ...], length_ns: float) -> CellRow:
    summary = cell.summary

    def number(value_ns: float | None) -> str:
        return "–" if value_ns is None else significant(value_ns / length_ns)

    interval = summary.interval
    between = ""
    if interval is not None:
        known = interval.high <= length_ns * _MOST_SHOWN
        between = f"[{number(interval.low)}, {number(interval.high) if known else '∞'}]"
    moved = median_migrations(cell)
    spread = summary.spread_ratio
    others = [(status, n) for status, n in summary.counts if status != "ok" and n]
    return CellRow(
        mode=mode_class(cell.cell.binding.mode),
        axes=tuple(_bare_value(cell, axis) for axis in axes),
        median=number(summary.median_ns),
        interval=between,
        p99=number(summary.p99_ns),
        cpu=number(summary.cpu_median_ns),
        spread="–" if spread is None else percent(spread),
        launches=f"{summary.count('ok')}",
        others=", ".join(f"{n} {status}" for status, n in others),
        migrations="–" if moved is None else significant(moved, 3 if moved % 1 else 1),
        speedup=speedup(cell.comparison.speedup_ratio) if cell.comparison else "",
        verdict=_cell_verdict(cell),
        note=twin_note(cell),
        baseline=cell.baseline is None and cell.is_measured,
        command=reproduce_command(study, (cell.cell,)),
        throughput=throughput(cell),
    )


def _bare_value(cell: CellStudy, axis: str) -> str:
    """The value under its column's heading, which already says the noun."""
    value = dict(cell.cell.axes).get(axis, "–")
    if axis == "binding":
        return axis_value(cell.cell, axis)
    if axis in {"threads", "workers"}:
        return value.replace("-", " ")
    return value


def _cell_verdict(cell: CellStudy) -> VerdictWord:
    if not cell.is_measured:
        if cell.summary.count("skipped") == cell.summary.attempts:
            return VerdictWord(tone="plain", sign="–", word="skipped")
        return NOT_MEASURED
    if cell.baseline is None:
        return REFERENCE
    return verdict_word(cell.comparison.verdict) if cell.comparison else NOT_COMPARED


def claim_rows(study: Study) -> tuple[ClaimRow, ...]:
    """Each published claim, once for every pair of cells it speaks of."""
    rows = []
    for claim in study.scenario.claims:
        pairs = claim_pairs(claim, study.planned)
        missing = _missing_need(claim, study.run.host.topology)
        if missing or not pairs:
            rows.append(_claim_row(claim, "", None, missing or "no cell of the scenario fits it"))
            continue
        for one, two in pairs:
            pair = f"{full_name(one)} against {full_name(two)}" if len(pairs) > 1 else ""
            comparison = compare_cells(study, one, two)
            rows.append(_claim_row(claim, pair, comparison, "" if comparison else _no_pair()))
    return tuple(rows)


def _no_pair() -> str:
    return "one of the two cells has no valid launch on this host"


def _claim_row(claim: Claim, pair: str, comparison: Comparison | None, unmet: str) -> ClaimRow:
    interval = comparison.interval if comparison else None
    verdict, detail = _claim_verdict(claim, comparison, unmet)
    return ClaimRow(
        says=claim.says,
        pair=pair,
        published=ratio(claim.published_ratio) if claim.published_ratio else "–",
        measured=speedup(comparison.speedup_ratio) if comparison else "–",
        interval=bounds(interval.low, interval.high) if interval else "",
        verdict=verdict,
        detail=detail,
    )


def _claim_verdict(
    claim: Claim, comparison: Comparison | None, unmet: str
) -> tuple[VerdictWord, str]:
    if comparison is None:
        return VerdictWord(tone="plain", sign="–", word="not judged"), unmet
    if comparison.verdict == "undecided":
        needed = comparison.launches_needed
        about = count(needed, "launch", "launches") if needed else ""
        detail = f"about {about} of each would decide" if about else ""
        return VerdictWord(tone="plain", sign="?", word="undecided"), detail
    if comparison.verdict != "faster":
        word = VerdictWord(tone="bad", sign="✗", word="does not reproduce")
        return word, "it is slower here" if comparison.verdict == "slower" else "no difference here"
    detail = ""
    published, interval = claim.published_ratio, comparison.interval
    if published and interval and not interval.contains(published):
        detail = "the effect is smaller here" if published > interval.high else "and larger here"
    return VerdictWord(tone="good", sign="✓", word="reproduces"), detail


def _missing_need(claim: Claim, topology: Topology) -> str:
    """What the claim needs and the host's topology has not; empty where nothing is missing."""
    needs = claim.needs
    if needs.smt is not None and needs.smt != topology.has_smt:
        return "needs SMT, which this host has not" if needs.smt else "needs a host without SMT"
    nodes = sum(1 for node in topology.nodes if node.cpus)
    if needs.nodes is not None and nodes < needs.nodes:
        return f"needs {needs.nodes} nodes with CPUs; this host has {nodes}"
    cores = len({cpu.core for cpu in topology.cpus})
    if needs.cores is not None and cores < needs.cores:
        return f"needs {count(needs.cores, 'core')}; this host has {cores}"
    if needs.gpu or needs.npu:
        return f"needs {'a GPU' if needs.gpu else 'an NPU'}, which cells here do not use"
    return ""


def launch_rows(study: Study) -> tuple[LaunchRow, ...]:
    """Every launch in the order they ran; those that are not `ok` with the end of their log."""
    summaries = {one.launch: one for cell in study.cells for one in cell.summary.launches}
    rows = []
    for launch in study.launches:
        summary = summaries.get(launch.id)
        rows.append(
            LaunchRow(
                id=launch.id,
                cell=full_name(launch.cell),
                tone=_TONES.get(launch.status, "warn"),
                status=launch.status,
                reason=launch.reason or "",
                mend=launch.mend or "",
                evidence=launch.evidence,
                median=duration(summary.median_ns) if summary else "–",
                steady=steady_words(summary) if summary else "",
                log=_log_tail(launch),
            )
        )
    return tuple(rows)


def _log_tail(launch: Launch) -> str:
    if launch.status in {"ok", "skipped"}:
        return ""
    log = launch.log.strip()
    return log if len(log) <= _LOG_CHARACTERS else f"…{log[-_LOG_CHARACTERS:]}"


def launches_summary(study: Study) -> str:
    """How many launches came to each status: `88 ok, 1 invalid, 3 skipped`."""
    counts: dict[str, int] = {}
    for launch in study.launches:
        counts[launch.status] = counts.get(launch.status, 0) + 1
    order = ("ok", "invalid", "failed", "timed-out", "skipped")
    return ", ".join(f"{counts[status]:,} {status}" for status in order if status in counts)
