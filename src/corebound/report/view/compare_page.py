"""The page that compares two runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from corebound.model.record import Run
from corebound.report.charts.axis import Axis
from corebound.report.charts.interval import IntervalPlot
from corebound.report.view.addresses import comparison_file, run_file
from corebound.report.view.comparing import CAVEAT, ComparedCell, RunComparison
from corebound.report.view.intervals import axis_over, ratio_ticks
from corebound.report.view.page import Head, Hero, Label, Piece, Text, Tick, VerdictWord
from corebound.report.view.words import (
    NOT_COMPARED,
    bounds,
    count,
    day,
    label,
    mode_class,
    rich,
    speedup,
    time_text,
    verdict_word,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRow:
    """One cell in both runs."""

    title: str
    address: str
    label: Label
    before: str
    after: str
    plot: IntervalPlot
    speedup: str
    interval: str
    verdict: VerdictWord


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioTable:
    """Cells on one axis, which is None where none of them has a ratio."""

    axis: Axis | None
    ticks: tuple[Tick, ...]
    rows: tuple[CompareRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparePage:
    """Two runs: findings first, the rest folded.

    Attributes:
        address: Of the page, from the site's top.
        runs: (what it is, name, address) of both.
        unlike, alone: Cells that are not compared, and why.
    """

    address: str
    head: Head
    hero: Hero
    command: str
    runs: tuple[tuple[str, str, str], ...]
    findings: RatioTable
    others: RatioTable
    unlike: tuple[tuple[str, str], ...]
    alone: tuple[tuple[str, str], ...]


def compare_page(found: RunComparison, *, now: str) -> ComparePage:
    """The page of one comparison."""
    findings = [one for one in found.cells if one.is_finding]
    others = [one for one in found.cells if not one.is_finding]
    title = f"{day(found.before.started_at)} against {day(found.after.started_at)}"
    return ComparePage(
        address=comparison_file(found.before, found.after),
        head=Head(
            title=f"Corebound: runs {found.before.id} and {found.after.id}",
            description=f"Two runs on {found.after.host.name}, cell by cell.",
            root="../",
            crumbs=(("Scenarios", "../index.html"), ("Compare", "")),
            made=f"Page made {day(now)}.",
        ),
        hero=Hero(
            title=f"Two runs on {found.after.host.name}",
            question="",
            context=title,
            verdict=_verdict(findings),
            support=rich(
                f"{count(len(found.cells), 'cell')} compared, {len(others)} without a clear "
                f"difference. {CAVEAT}"
            ),
            flags=(),
        ),
        command=f"corebound compare {found.before.id} {found.after.id}",
        runs=(_run("Before", found.before), _run("After", found.after)),
        findings=_table(findings),
        others=_table(others),
        unlike=found.unlike,
        alone=found.alone,
    )


def _verdict(findings: list[ComparedCell]) -> Text:
    slower = sum(
        one.comparison is not None and one.comparison.verdict == "slower" for one in findings
    )
    faster = len(findings) - slower
    if not findings:
        return rich("No cell clearly differs.")
    parts: list[str | Piece] = []
    if slower:
        parts += [f"{count(slower, 'cell')} ", Piece("slower", "bad")]
    if faster:
        parts += [", " if parts else "", f"{count(faster, 'cell')} ", Piece("faster", "good")]
    return rich(*parts, ".")


def _table(cells: Sequence[ComparedCell]) -> RatioTable:
    shown = [one.comparison for one in cells if one.comparison]
    axis = axis_over(shown, margin=max(one.margin for one in cells)) if shown else None
    return RatioTable(
        axis=axis,
        ticks=ratio_ticks(axis) if axis else (),
        rows=tuple(_row(one) for one in cells),
    )


def _run(what: str, run: Run) -> tuple[str, str, str]:
    commit = f", commit {run.commit.sha[:10]} {run.commit.subject}" if run.commit else ""
    return what, f"{run.id}, {day(run.started_at)}{commit}", f"../{run_file(run)}"


def _row(one: ComparedCell) -> CompareRow:
    comparison = one.comparison
    interval = comparison.interval if comparison else None
    verdict = verdict_word(comparison.verdict) if comparison else NOT_COMPARED
    if comparison and not one.clear and comparison.verdict in {"faster", "slower"}:
        verdict = verdict_word("undecided")
    return CompareRow(
        title=one.title,
        address=f"../scenario/{one.cell.scenario}.html",
        label=label(one.cell),
        before=time_text(one.before.median_ns),
        after=time_text(one.after.median_ns),
        plot=IntervalPlot(
            mode=mode_class(one.cell.binding.mode),
            estimate=comparison.speedup_ratio if comparison else None,
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            dots=(),
            margin=one.margin,
        ),
        speedup=speedup(comparison.speedup_ratio) if comparison else "–",
        interval=bounds(interval.low, interval.high) if interval else "",
        verdict=verdict,
    )


def comparison_links(found: Iterable[RunComparison]) -> tuple[tuple[str, str], ...]:
    """What to call each comparison, and its address."""
    return tuple((_link_text(one), comparison_file(one.before, one.after)) for one in found)


def _link_text(found: RunComparison) -> str:
    moments = f"{day(found.before.started_at)} and {day(found.after.started_at)}"
    return f"Compare: {found.after.host.name}, {moments}"
