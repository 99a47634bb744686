"""The page of a run of `corebound tune`: what to set, the race, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from corebound.analysis.commands import CommandLine, original_command
from corebound.analysis.tuning import TuneResult
from corebound.analysis.tuning_loads import (
    LoadRow,
    LoadsResult,
    common_sentence,
    load_rows,
    load_text,
)
from corebound.analysis.tuning_proofs import Proof
from corebound.analysis.tuning_text import (
    certainty,
    headline,
    inconclusive_winner,
    names,
    not_tried,
    same_as_others,
    times,
    verify_command,
)
from corebound.analysis.tuning_verification import Answer, Verification
from corebound.analysis.wording import Flag, Tone, capital, count, day, mode_class, rich
from corebound.records.tuning import Objective
from corebound.report.charts.axis import Axis, linear_axis, log_axis
from corebound.report.charts.intervals import (
    NARROW_COLUMN,
    IntervalPlot,
    comparison_axis,
    comparison_plot,
    effect_ticks,
)
from corebound.report.charts.lines import LoadPoint, TradeoffCurve
from corebound.report.charts.race import Lane
from corebound.report.elements import Head, Hero, Tick, horizontal_ticks, vertical_ticks
from corebound.report.scenario.provenance import Fact
from corebound.report.urls import tune_file
from corebound.scenario.cell import Cell
from corebound.scenario.loader import load_document
from corebound.stats.comparison import Comparison
from corebound.stats.intervals import Interval
from corebound.units import duration

# What a value of each objective is.
VALUES: Mapping[Objective, str] = {
    "latency": "Time of an iteration",
    "throughput": "Time per iteration of all workers",
    "rate": "Time between requests at the highest rate within the bound",
    "cost": "CPU time of an iteration",
}


class RaceRow(Struct, frozen=True, kw_only=True):
    """A configuration of the race.

    Attributes:
        cell: The configuration.
        name: Its name.
        tags: Its roles: recommended (or winner, if that is inconclusive), default, launcher, tie.
        lane: Its part of the race.
        outcome: How its race ended.
        value_ns, cpu_ns: The objective, and the CPU time of an iteration.
        interval: The 95 % interval of the value, in nanoseconds.
        comparison: Compared with the default.
        plot: The same as a chart; None without a comparison.
        compared: The same in words.
    """

    cell: Cell
    name: str
    tags: tuple[str, ...]
    lane: Lane
    outcome: str
    value_ns: float | None
    interval: Interval | None
    cpu_ns: float | None
    comparison: Comparison | None
    plot: IntervalPlot | None
    compared: str


class Tradeoff(Struct, frozen=True, kw_only=True):
    """The objective against CPU time, a dot for each configuration.

    `marks` are (left, top, number) in per cent; `key` has the number and name of those on the
    Pareto front.
    """

    curves: tuple[TradeoffCurve, ...]
    across: Axis
    up: Axis
    along: tuple[Tick, ...]
    levels: tuple[Tick, ...]
    marks: tuple[tuple[float, float, int], ...]
    key: tuple[tuple[int, str, str], ...]
    says: str


class Loads(Struct, frozen=True, kw_only=True):
    """The races for all loads: a sentence, and each load with the address of its page."""

    sentence: str
    rows: tuple[tuple[LoadRow, str], ...]


class TunePage(Struct, frozen=True, kw_only=True):
    """A run of `corebound tune`.

    Attributes:
        address: The address of the page, from the site's top.
        title: What was tuned.
        summary: What the overview says of it: its headline, or that this no longer holds.
        command: The command of the race.
        value: What the values of the rows are.
        files: The artefacts, with what is known of each.
        rows: The configurations, best first.
        axis: The axis of the comparisons; None without any.
        ticks: Its labels.
        tradeoff: The objective against CPU time; None if it is the same or unknown.
        sure: How sure the recommendation is.
        not_tried: What took no part, with the reasons.
        changes: When to tune again, with what holds now.
        verify: The command that checks the recommendation again.
        loads: What the races for all loads say together, a row for each; None if this is the only
            one.
        data: Address of this data as JSON, from the page.
    """

    address: str
    title: str
    summary: str
    head: Head
    hero: Hero
    command: CommandLine
    value: str
    files: tuple[Proof, ...]
    rows: tuple[RaceRow, ...]
    axis: Axis | None
    ticks: tuple[Tick, ...]
    tradeoff: Tradeoff | None
    sure: tuple[str, ...]
    not_tried: tuple[tuple[str, str], ...]
    changes: tuple[Fact, ...]
    verify: CommandLine
    loads: Loads | None
    data: str


def tune_page(
    result: TuneResult,
    files: Sequence[Proof],
    *,
    loads: LoadsResult | None,
    verified: Verification | None = None,
    now: str,
) -> TunePage:
    """Build the page of a run of `corebound tune`.

    Args:
        result: Its result.
        files: The artefacts of the recommended configuration.
        loads: The races for all loads of the scenario, if there are several.
        verified: The latest check of its recommendation; None if it was not checked.
        now: ISO timestamp of the page.
    """
    rows = _rows(result)
    compared = [row.comparison for row in rows if row.comparison is not None]
    margin = result.tuning.rule.margin
    axis = comparison_axis(compared, margin=margin) if compared else None
    scenario = load_document(result.source.document, result.source.path)
    load = load_text(result.tuning)
    of = f"{scenario.title}, {load}" if load else scenario.title
    run = result.run
    address = tune_file(run, scenario.name, result.tuning)
    lost = verified if verified is not None and verified.answer == "lost" else None
    return TunePage(
        address=address,
        title=of,
        summary=headline(result, bounds=False) if lost is None else lost.text,
        head=Head(
            title=f"Corebound: Tune {of}",
            description=headline(result),
            root="../",
            made=f"Page made {day(now)}.",
        ),
        hero=Hero(
            title="Tune",
            question=f"Which configuration gives {of} the best {result.tuning.objective} on this"
            " host?",
            context=f"{of} · {run.host.name} · {day(run.started_at)}",
            verdict=rich(headline(result, bounds=False)),
            support=rich(_support(result)),
            flags=() if verified is None else (_verified_flag(verified),),
        ),
        command=original_command(run),
        value=VALUES[result.tuning.objective],
        files=tuple(files),
        rows=rows,
        axis=axis,
        ticks=effect_ticks(axis, NARROW_COLUMN) if axis else (),
        tradeoff=_tradeoff(rows) if result.tuning.objective != "cost" else None,
        sure=certainty(result),
        not_tried=(*not_tried(result), *same_as_others(result)),
        changes=_changes(result),
        verify=verify_command(result),
        loads=_loads(loads) if loads is not None else None,
        data=f"../data/{address.removesuffix('.html')}.json",
    )


_SIGNS: Mapping[Answer, tuple[Tone, str]] = {
    "holds": ("good", "✓"),
    "lost": ("bad", "✗"),
    "inconclusive": ("warn", "?"),
}


def _verified_flag(verified: Verification) -> Flag:
    """Whether the recommendation held when it was last checked."""
    tone, sign = _SIGNS[verified.answer]
    title = f"Checked on {day(verified.now.run.started_at)}"
    return Flag(tone=tone, sign=sign, title=title, detail=verified.text)


def _loads(loads: LoadsResult) -> Loads:
    return Loads(
        sentence=common_sentence(loads),
        rows=tuple(
            (row, tune_file(result.run, str(result.source.document["name"]), result.tuning))
            for row, result in zip(load_rows(loads), loads.results, strict=True)
        ),
    )


def _support(result: TuneResult) -> str:
    """The interval of the gain, and how sure the race is."""
    gain, default = capital(inconclusive_winner(result)), result.against(result.contest.default)
    if result.advice == "change" and default is not None:
        gain = f"Against the default: {times(default, result.tuning.objective)}."
    return " ".join(filter(None, (gain, next(iter(certainty(result)), ""))))


def _rows(result: TuneResult) -> tuple[RaceRow, ...]:
    race, known = result.standing.race, names(result)
    dropped = {one.key: one for one in race.dropped}
    fresh = {one.cell.key: one.summary for one in result.confirmed}
    most_fresh = max((summary.attempts for summary in fresh.values()), default=0)
    rows = []
    for key in (*race.remaining, *(one.key for one in reversed(race.dropped))):
        cell, left = result.cells[key], dropped.get(key)
        comparison = result.compared_with_default(key)
        summary = fresh[key] if key in fresh and fresh[key].launches else result.summaries[key]
        example = result.summaries[key]
        rows.append(
            RaceRow(
                cell=cell,
                name=capital(known[key]),
                tags=_tags(result, key),
                lane=Lane(
                    blocks=race.blocks if left is None else left.block + 1,
                    fresh=fresh[key].attempts if key in fresh else 0,
                    dropped=left is not None,
                    total=race.blocks + most_fresh,
                    race_blocks=race.blocks,
                ),
                outcome=_outcome(result, key),
                value_ns=summary.median_ns,
                interval=summary.interval,
                cpu_ns=example.cpu_median_ns,
                comparison=comparison,
                plot=None
                if comparison is None
                else comparison_plot(comparison, margin=result.tuning.rule.margin),
                compared="" if comparison is None else times(comparison, result.tuning.objective),
            )
        )
    best = result.recommended
    return tuple(sorted(rows, key=lambda row: best is None or row.cell.key != best.key))


def _tags(result: TuneResult, key: str) -> tuple[str, ...]:
    finalists = result.standing.finalists
    ties = finalists.ties if finalists is not None and len(finalists.ties) > 1 else ()
    best = "winner" if result.advice == "inconclusive" else "recommended"
    roles = {
        best: result.recommended is not None and result.recommended.key == key,
        "default": result.contest.default == key,
        "launcher": result.contest.launcher == key,
        "tie": key in ties,
    }
    return tuple(name for name, holds in roles.items() if holds)


def _outcome(result: TuneResult, key: str) -> str:
    left = next((one for one in result.standing.race.dropped if one.key == key), None)
    if left is None:
        return "stayed"
    return left.reason or f"dropped after block {left.block + 1}"


# A logarithmic axis of a narrower range may have no round value.
_LINEAR_SPAN = 3.0


def _time_axis(times_ns: Sequence[float]) -> Axis:
    low, high = min(times_ns) / 1.1, max(times_ns) * 1.1
    axis = linear_axis if high / low < _LINEAR_SPAN else log_axis
    return axis(low, high, most_ticks=5)


def _tradeoff(rows: Sequence[RaceRow]) -> Tradeoff | None:
    known = [(row, row.value_ns, row.cpu_ns) for row in rows if row.value_ns and row.cpu_ns]
    points = [(row, value, cpu) for row, value, cpu in known if value and cpu]
    if len(points) < 2:
        return None
    front = [
        (row, value, cpu)
        for row, value, cpu in points
        if not any(
            other <= value and other_cpu <= cpu and (other, other_cpu) != (value, cpu)
            for _, other, other_cpu in points
        )
    ]
    values, cpus = [value for _, value, _ in points], [cpu for _, _, cpu in points]
    across, up = _time_axis(cpus), _time_axis(values)
    best = ", ".join(row.name for row, _, _ in front)
    return Tradeoff(
        curves=tuple(
            TradeoffCurve(
                mode=mode_class(row.cell.binding.mode),
                dash=0,
                spots=(LoadPoint(per_s=cpu, latency=value, per_s_ends=None, latency_ends=None),),
            )
            for row, value, cpu in points
        ),
        across=across,
        up=up,
        along=horizontal_ticks(across, duration),
        levels=vertical_ticks(up, duration),
        marks=tuple(
            (
                round(across.clipped(cpu) * 100, 1),
                round((1 - up.clipped(value)) * 100, 1),
                number,
            )
            for number, (_, value, cpu) in enumerate(front, start=1)
        ),
        key=tuple(
            (number, mode_class(row.cell.binding.mode), row.name)
            for number, (row, _, _) in enumerate(front, start=1)
        ),
        says=f"{count(len(points), 'configuration')}; the Pareto front: {best}",
    )


def _changes(result: TuneResult) -> tuple[Fact, ...]:
    """What a recommendation depends on, with its present value."""
    run = result.run
    allowed = len(run.host.topology.allowed)
    locks = [
        f"{lock.name}: Python {lock.python}, {count(len(lock.packages), 'package')}"
        for lock in run.environments
    ]
    return (
        Fact(term="CPUs or NUMA nodes", value=f"{count(allowed, 'CPU')} allowed"),
        Fact(term="Kernel", value=run.host.kernel),
        Fact(term="Framework", value="; ".join(locks) or "none"),
    )
