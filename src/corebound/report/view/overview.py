"""The first page: what the latest runs found, scenario by scenario."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.errors import Fault
from corebound.model.calibration import Calibration
from corebound.report.charts.axis import Axis
from corebound.report.charts.interval import IntervalPlot
from corebound.report.view.addresses import run_file
from corebound.report.view.chronicle import EMPTY, Chronicle
from corebound.report.view.command import FIRST, CommandLine, reproduce_command, row_command
from corebound.report.view.imported import benchmarks, projects
from corebound.report.view.intervals import axis_over, plot_of, ratio_ticks
from corebound.report.view.launch_notes import statuses
from corebound.report.view.night import Night, night
from corebound.report.view.noise import calibration_for
from corebound.report.view.overview_flags import overview_flags
from corebound.report.view.page import (
    Head,
    Hero,
    Label,
    Piece,
    Text,
    Tick,
    VerdictWord,
)
from corebound.report.view.past import Past, past_of
from corebound.report.view.records import Record
from corebound.report.view.series_rows import SeriesGroup
from corebound.report.view.study import Duel, Study
from corebound.report.view.verdict import verdict_of
from corebound.report.view.words import (
    NO_BASELINE,
    NOT_MEASURED,
    compared_bounds,
    compared_with,
    count,
    day,
    label,
    rich,
    speedup,
    strong,
    verdict_word,
)
from corebound.stats.multiplicity import suite_findings
from corebound.units import percent

_TITLE = "Which cores, and how many threads?"
_ALONE = VerdictWord(tone="plain", sign="", word="one setting")


class OverviewRow(Struct, frozen=True, kw_only=True):
    """A scenario's state, as its latest run left it."""

    name: str
    address: str
    title: str
    question: str
    best: Label | None
    against: str
    plot: IntervalPlot | None
    speedup: str
    interval: str
    verdict: VerdictWord
    launches: str
    others: str
    host: str
    when: str
    run: str
    command: CommandLine
    past: Past | None


class OverviewPage(Struct, frozen=True, kw_only=True):
    """The site's first page; without rows it says what to run.

    `night` is what is new, where there is a history; `pages` are (text, address) of those
    that are about all scenarios, `projects` of histories that were imported. `imported` are
    their benchmarks, if they are few enough to be read. `first` is what to run.
    """

    head: Head
    hero: Hero
    axis: Axis | None
    ticks: tuple[Tick, ...]
    night: Night | None
    rows: tuple[OverviewRow, ...]
    pages: tuple[tuple[str, str], ...]
    projects: tuple[str, ...]
    imported: tuple[SeriesGroup, ...]
    first: tuple[CommandLine, ...] = FIRST


def overview_page(
    studies: Sequence[Study],
    *,
    now: str,
    pages: Sequence[tuple[str, str]] = (),
    known: Chronicle = EMPTY,
    records: Sequence[Record] = (),
    calibrations: Sequence[Calibration] = (),
    faults: Sequence[Fault] = (),
) -> OverviewPage:
    """The overview of all scenarios, by name; without any it says what to run.

    Args:
        studies: One a scenario.
        now: ISO moment the page is made.
        pages: (text, address) of pages that are about all scenarios.
        known: What is known over time.
        records: Every run with its launches, in any order.
        calibrations: All there are.
        faults: What of the records could not be read.
    """
    clear = _clear(studies)
    noise = _noise(studies, calibrations)
    margin = max((study.measure.margin for study in studies), default=0.02)
    shown = [study.leader.comparison for study in studies if study.leader]
    axis = axis_over(shown, margin=margin) if shown else None
    tonight = night(known, records)
    top = Hero(
        title="Overview",
        question=_TITLE if studies else "",
        context="",
        verdict=tonight.verdict if tonight else _verdict(studies, clear),
        support=(*(tonight.support if tonight else _support(studies, clear)), *noise),
        flags=overview_flags(studies, faults),
    )
    return OverviewPage(
        head=Head(
            title="Corebound: overview",
            description=f"{count(len(studies), 'scenario')} measured with corebound.",
            root="",
            here="Scenarios",
            above=(),
            made=f"Page made {day(now)}.",
        ),
        hero=top,
        axis=axis,
        ticks=ratio_ticks(axis) if axis else (),
        night=tonight,
        rows=tuple(_row(study, known, clear) for study in studies),
        pages=tuple(pages),
        projects=projects(known),
        imported=benchmarks(known),
    )


def _clear(studies: Sequence[Study]) -> frozenset[str]:
    """The ids of the cells that differ from their baseline also as some of all there are."""
    cells = [cell for study in studies for cell in study.cells]
    findings = suite_findings([cell.comparison for cell in cells])
    return frozenset(cell.cell.id for cell, is_one in zip(cells, findings, strict=True) if is_one)


def _winner(study: Study, clear: frozenset[str]) -> Duel | None:
    """The scenario's fastest setting, if it is a finding of the whole suite too."""
    winner = study.winner
    return winner if winner is not None and winner.cell.cell.id in clear else None


def _noise(studies: Sequence[Study], calibrations: Sequence[Calibration]) -> Text:
    """How large the noise floors are, where scenarios were calibrated."""
    found = [calibration_for(calibrations, study.run, study.source) for study in studies]
    known = [max(one.noise, key=lambda each: each.launches) for one in found if one]
    if not known:
        return ()
    low, high = (percent(end(one.floor_ratio for one in known)) for end in (min, max))
    span = low if low == high else f"{low} to ±{high}"
    return rich(f" Noise floor ±{span}, calibrated in {len(known)} of {len(studies)}.")


def _verdict(studies: Sequence[Study], clear: frozenset[str]) -> Text:
    if not studies:
        return rich("No records yet.")
    faster = sum(_winner(study, clear) is not None for study in studies)
    if len(studies) == 1:
        return verdict_of(studies[0])[0]
    compared = sum(bool(study.ranked) for study in studies)
    if not compared:
        return rich("Nothing could be compared yet.")
    rest = len(studies) - compared
    end = f"; {rest} could not be compared." if rest else "."
    if not faster:
        where = count(compared, "scenario")
        return rich(f"No setting clearly beats its baseline in {where}{end}")
    everywhere = faster == len(studies)
    lead = f"In all {faster}" if everywhere else f"In {faster} of {len(studies)}"
    return rich(
        f"{lead} scenarios a setting is ", Piece("faster", "good"), f" than the baseline{end}"
    )


def _support(studies: Sequence[Study], clear: frozenset[str]) -> Text:
    if not studies:
        return rich("Measure a scenario, then make the report again.")
    counts: dict[str, int] = {}
    for study in studies:
        word = _state(study, clear).word
        counts[word] = counts.get(word, 0) + 1
    said = ", ".join(f"{number} {word}" for word, number in counts.items())
    newest = max(studies, key=lambda study: study.run.started_at)
    hosts = list(dict.fromkeys(study.run.host.name for study in studies))
    where = hosts[0] if len(hosts) == 1 else count(len(hosts), "host")
    when = f"On {where}, last measured {day(newest.run.started_at)}."
    if len(studies) == 1:
        return rich(f"One scenario. {when}")
    return rich("By the fastest rival of each: ", strong(said), f". {when}")


def _state(study: Study, clear: frozenset[str]) -> VerdictWord:
    """A scenario in a word: that of its fastest rival."""
    if _winner(study, clear) is not None:
        return verdict_word("faster")
    if study.leader:
        nearest = study.leader.comparison.verdict
        # Faster by itself, but not clearly so among as many comparisons.
        return verdict_word("undecided" if nearest == "faster" else nearest)
    measured = [cell for cell in study.cells if cell.is_measured]
    if any(cell.baseline is not None for cell in measured):
        return NO_BASELINE
    return _ALONE if measured else NOT_MEASURED


def _row(study: Study, known: Chronicle, clear: frozenset[str]) -> OverviewRow:
    duel = study.leader
    comparison = duel.comparison if duel else None
    first, *rest = statuses(study.launches) or ("none",)
    return OverviewRow(
        name=study.scenario.name,
        address=f"scenario/{study.scenario.name}.html",
        title=study.scenario.title,
        question=study.scenario.question,
        best=label(duel.cell.cell) if duel else None,
        against=compared_with(duel.cell.cell, duel.baseline.cell) if duel else "",
        plot=plot_of(duel.cell, margin=study.measure.margin) if duel else None,
        speedup=speedup(comparison.speedup_ratio) if comparison else "–",
        interval=compared_bounds(comparison),
        verdict=_state(study, clear),
        launches=first,
        others=", ".join(rest),
        host=study.run.host.name,
        when=day(study.run.started_at),
        run=run_file(study.run),
        command=row_command(study, duel.cell) if duel else reproduce_command(study, ()),
        past=past_of(
            study,
            [one.cell.key for one in (duel.cell if duel else None, study.baseline) if one],
            known,
        ),
    )
