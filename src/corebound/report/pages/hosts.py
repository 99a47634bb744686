"""The page of all hosts, where there are several: what holds on which class, and which are odd."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from corebound.analysis.commands import CommandLine
from corebound.analysis.host_comparison import (
    ClassAdvice,
    ClassResult,
    ConfigurationRow,
    HardwareClass,
    HostComparison,
    Member,
    OutlierHost,
    ScenarioAcross,
)
from corebound.analysis.host_records import HostRecords
from corebound.analysis.wording import (
    Flag,
    Text,
    count,
    day,
    relative_speed,
    rich,
    speed_bounds,
    strong,
    time_text,
    verdict_word,
)
from corebound.records.run_record import Run
from corebound.report.charts.axis import Axis, effect_scale
from corebound.report.charts.intervals import ClassStrip, IntervalPlot
from corebound.report.elements import Head, Hero
from corebound.report.scenario.heat_map import tint_of
from corebound.report.scenario.provenance import topology_text
from corebound.report.urls import host_file

State = Literal["faster", "slower", "equivalent", "inconclusive", "baseline", "absent"]
# More hosts of one kind are counted in the notices.
_MOST_NAMED = 2
# More hosts are folded by class.
_MOST_OPEN = 40
# More dots of hosts would hide each other.
_MOST_DOTS = 100
COMPARE = CommandLine("corebound compare --by class")


class HostRow(Struct, frozen=True, kw_only=True):
    """A host, as its latest run saw it.

    Attributes:
        address: Its page.
        topology: Its sockets, cores and CPUs in words.
        latest: Its latest run.
        runs: The number of its runs.
        hardware: The name of its class; empty if hosts are not compared.
    """

    address: str
    topology: str
    latest: Run
    runs: int
    hardware: str = ""


class ClassCell(Struct, frozen=True, kw_only=True):
    """One configuration on one class.

    Attributes:
        state: How it looks.
        sign, text: The value; `read` is what a screen reader adds to it.
        bounds: Its interval; empty without one.
        note: The spread, or why there is no value.
        outliers: (name, anchor) of hosts far from the class.
        strip: Its chart; None without a ratio.
        tint: Per cent of the verdict's colour.
    """

    state: State
    text: str
    sign: str = ""
    read: str = ""
    bounds: str = ""
    note: str = ""
    outliers: tuple[tuple[str, str], ...] = ()
    strip: ClassStrip | None = None
    tint: int = 0


class MatrixRow(Struct, frozen=True, kw_only=True):
    """One configuration in all classes; `differs` says that the classes differ."""

    title: str
    address: str
    name: str
    cells: tuple[ClassCell, ...]
    differs: bool


class Matrix(Struct, frozen=True, kw_only=True):
    """Scenarios × classes.

    Attributes:
        classes: (name, cores, number of hosts).
        best: For each scenario the configuration that is fastest over all classes.
        others: All other configurations and the times of baselines.
        axis: Of the charts.
    """

    classes: tuple[tuple[str, str, str], ...]
    best: tuple[MatrixRow, ...]
    others: tuple[MatrixRow, ...]
    axis: Axis


class OutlierRow(Struct, frozen=True, kw_only=True):
    """A host that is far from its class.

    Attributes:
        values: (scenario and configuration, its value, the value of its class).
    """

    anchor: str
    name: str
    address: str
    hardware: str
    values: tuple[tuple[str, str, str], ...]
    differs: tuple[tuple[str, str, str], ...]


class HostsPage(Struct, frozen=True, kw_only=True):
    """Every host, the one with the latest run first; what holds on which class comes before.

    Attributes:
        rows: The hosts.
        groups: The same by class, to be folded; empty if they are few.
    """

    head: Head
    hero: Hero
    rows: tuple[HostRow, ...]
    groups: tuple[tuple[str, tuple[HostRow, ...]], ...] = ()
    matrix: Matrix | None = None
    outliers: tuple[OutlierRow, ...] = ()
    facts: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    advice: tuple[tuple[str, ClassAdvice], ...] = ()
    command: CommandLine = COMPARE


def hosts_page(
    hosts: Sequence[HostRecords], *, now: str, comparison: HostComparison | None = None
) -> HostsPage:
    """Build the page.

    Args:
        hosts: The hosts, at least one.
        now: ISO timestamp of the page.
        comparison: Their results; None if they are not known.
    """
    latest_first = sorted(hosts, key=lambda host: host.runs[-1].started_at, reverse=True)
    latest = latest_first[0].runs[-1]
    has_matrix = comparison is not None and bool(comparison.scenarios)
    names = comparison.class_names if comparison is not None else {}
    by_host = {host.id: names[host.hardware] for host in (comparison.hosts if comparison else ())}
    verdict = _headline(comparison) if comparison is not None and has_matrix else None
    counted = f"{count(len(hosts), 'host')}, {_runs(hosts)}."
    support = f"Latest run: {day(latest.started_at)} on {latest.host.name}."
    rows = tuple(
        HostRow(
            address=host_file(host.runs[-1].host.id),
            topology=topology_text(host.runs[-1].host.topology),
            latest=host.runs[-1],
            runs=host.recorded,
            hardware=by_host.get(host.runs[-1].host.id, ""),
        )
        for host in latest_first
    )
    return HostsPage(
        head=Head(
            title="Corebound: hosts",
            description="Every host with recorded runs.",
            root="",
            made=f"Page made {day(now)}.",
        ),
        hero=Hero(
            title="Hosts",
            question="",
            context="",
            verdict=verdict or rich(counted),
            support=rich(f"{counted} {support}" if verdict else support),
            flags=tuple(_flags(comparison)) if comparison is not None and has_matrix else (),
        ),
        rows=rows,
        groups=_by_class(rows) if len(rows) > _MOST_OPEN else (),
        matrix=_matrix(comparison, names) if comparison is not None and has_matrix else None,
        outliers=tuple(_outlier(outlier, names) for outlier in comparison.outliers)
        if comparison is not None
        else (),
        facts=tuple(_facts(comparison)) if comparison is not None else (),
        advice=tuple(
            (names.get(advice.hardware, advice.hardware.name), advice)
            for advice in comparison.advice
        )
        if comparison is not None
        else (),
    )


def _by_class(rows: Sequence[HostRow]) -> tuple[tuple[str, tuple[HostRow, ...]], ...]:
    """The rows of each class, by its name; hosts that are not compared come last."""
    groups: dict[str, list[HostRow]] = {}
    for row in rows:
        groups.setdefault(row.hardware, []).append(row)
    ordered = sorted(groups.items(), key=lambda group: (not group[0], group[0]))
    return tuple((name or "Not compared", tuple(own)) for name, own in ordered)


def _runs(hosts: Sequence[HostRecords]) -> str:
    return count(sum(host.recorded for host in hosts), "run")


def _best(scenario: ScenarioAcross) -> ConfigurationRow | None:
    """The configuration that is fastest over all classes; None without ratios."""
    rows = [row for row in scenario.rows if row.kind == "speedup" and _values(row)]
    return max(rows, key=lambda row: math.fsum(map(math.log, _values(row))) / len(_values(row)),
               default=None)  # fmt: skip


def _values(row: ConfigurationRow) -> list[float]:
    return [each.value for each in row.classes if each.value is not None]


def _headline(comparison: HostComparison) -> Text | None:
    """The configuration with the largest effect that all classes share, or how they differ."""
    names = comparison.class_names
    best = [(scenario, row) for scenario in comparison.scenarios if (row := _best(scenario))]
    shared = [
        (scenario, row)
        for scenario, row in best
        if len({each.verdict for each in row.classes}) == 1
        and row.classes[0].verdict in {"faster", "slower"}
    ]
    if shared:
        scenario, row = max(shared, key=lambda pair: min(map(abs, map(math.log, _values(pair[1])))))
        values = _values(row)
        word = row.classes[0].verdict or ""
        sizes = sorted(max(value, 1 / value) for value in values)
        size = f"{sizes[0]:.2f}–{sizes[-1]:.2f}×" if len(sizes) > 1 else f"{sizes[0]:.2f}×"
        tail = " on every class of hosts." if len(values) > 1 else "."
        return rich(f"{scenario.title}: {row.name} is ", strong(f"{size} {word}"), tail)
    for scenario, row in best:
        if row.extremes is not None:
            high, low = row.extremes
            return rich(
                f"{scenario.title}: {row.name} is ",
                strong(relative_speed(high.value or 1.0)),
                f" on {names[high.hardware]} and ",
                strong(relative_speed(low.value or 1.0)),
                f" on {names[low.hardware]}.",
            )
    return None


def _flags(comparison: HostComparison) -> Iterator[Flag]:
    outliers = comparison.outliers
    if outliers:
        named = [
            f"{each.host.name} ({each.differs[0].name} {each.differs[0].own})"
            if each.differs
            else each.host.name
            for each in outliers[:_MOST_NAMED]
        ]
        more = len(outliers) - len(named)
        detail = ", ".join(named) + (f" and {more:,} more" if more else "")
        yield Flag(
            tone="warn",
            sign="◎",
            title=count(len(outliers), "outlier host"),
            detail=detail,
            link="#outliers",
        )
    classes, names = comparison.classes, comparison.class_names
    too_few = comparison.too_few
    untested = sum(len(classes[hardware]) for hardware in too_few)
    agreeing = len(comparison.hosts) - len(outliers) - untested
    if agreeing:
        yield Flag(
            tone="plain",
            sign="✓",
            title=f"{count(agreeing, 'host agrees', 'hosts agree')} with their class"
            if agreeing != 1
            else "1 host agrees with its class",
            detail=f"{count(len(classes) - len(too_few), 'class', 'classes')} of hardware",
        )
    if too_few:
        listed = ", ".join(names[hardware] for hardware in too_few[:_MOST_NAMED])
        more = len(too_few) - _MOST_NAMED
        yield Flag(
            tone="plain",
            sign="?",
            title=f"{count(untested, 'host')} in classes too small to name outliers",
            detail=listed + (f" and {more:,} more" if more > 0 else ""),
        )


def _matrix(comparison: HostComparison, names: Mapping[HardwareClass, str]) -> Matrix:
    best: list[MatrixRow] = []
    others: list[MatrixRow] = []
    hardware = list(comparison.classes)
    for scenario in comparison.scenarios:
        shown = _best(scenario)
        for row in scenario.rows:
            built = MatrixRow(
                title=scenario.title,
                address=f"scenario/{scenario.name}.html",
                name=row.name if row.kind == "speedup" else f"{row.name}, time",
                cells=tuple(_cell(row.of(each), row, names) for each in hardware),
                differs=row.differs,
            )
            (best if row is shown else others).append(built)
    strips = [
        cell.strip for row in (*best, *others) for cell in row.cells if cell.strip is not None
    ]
    return Matrix(
        classes=tuple(
            (names[each], each.shape, count(len(hosts), "host"))
            for each, hosts in comparison.classes.items()
        ),
        best=tuple(best),
        others=tuple(others),
        axis=effect_scale(
            [
                speed
                for strip in strips
                for speed in (strip.plot.estimate, *strip.plot.dots, *strip.outliers)
                if speed is not None
            ],
            [
                (interval.low, interval.high)
                for strip in strips
                if (interval := strip.plot.interval) is not None
            ],
            margin=0.02,
        ),
    )


def _cell(
    result: ClassResult | None, row: ConfigurationRow, names: Mapping[HardwareClass, str]
) -> ClassCell:
    if result is None:
        return ClassCell(state="absent", text="not measured")
    marks = tuple((member.host.name, _anchor(member.host.id)) for member in result.outliers)
    if result.value is None:
        reason = next((reason for _, reason in result.without), "")
        text = "outliers only" if marks else "no value"
        return ClassCell(state="absent", text=text, note=reason, outliers=marks)
    spread = f"spread {result.spread}" if result.spread else "1 host"
    if row.kind == "time":
        text = time_text(result.value)
        return ClassCell(state="baseline", text=text, note=spread, outliers=marks)
    state = result.verdict or "inconclusive"
    word = verdict_word(state)
    size, _, direction = relative_speed(result.value).partition(" ")
    read = direction if state in {"faster", "slower"} else word.word
    interval = result.interval
    odd = f", outliers {', '.join(name for name, _ in marks)}" if marks else ""
    return ClassCell(
        state=state,
        sign=word.sign,
        text=size,
        read=read,
        bounds=speed_bounds(interval.low, interval.high) if interval is not None else "",
        note=spread,
        outliers=marks,
        strip=ClassStrip(
            plot=IntervalPlot(
                tone={"faster": "good", "slower": "bad"}.get(state, "plain"),
                estimate=result.value,
                interval=interval,
                dots=_dots(result.members, outliers=False),
                is_inconclusive=state == "inconclusive",
            ),
            outliers=_dots(result.members, outliers=True),
            description=f"{row.name} on {names[result.hardware]}: {size} {read}{odd}",
        ),
        tint=tint_of(result.value) if state in {"faster", "slower"} else 0,
    )  # fmt: skip


def _dots(members: Sequence[Member], *, outliers: bool) -> tuple[float, ...]:
    """The values of the hosts; of very many, evenly chosen ones, with both ends."""
    values = sorted(
        member.cell.speedup
        for member in members
        if member.deviation.is_outlier is outliers and member.cell.speedup is not None
    )
    if len(values) <= _MOST_DOTS:
        return tuple(values)
    last = len(values) - 1
    return tuple(values[round(at * last / (_MOST_DOTS - 1))] for at in range(_MOST_DOTS))


def _anchor(host: str) -> str:
    return f"outlier-{host}"


def _outlier(outlier: OutlierHost, names: Mapping[HardwareClass, str]) -> OutlierRow:
    host = outlier.host
    values = []
    for scenario, row, member in outlier.rows:
        of_class = row.of(host.hardware)
        typical = of_class.value if of_class is not None else None
        own = member.cell.speedup if row.kind == "speedup" else member.cell.time_ns
        write = relative_speed if row.kind == "speedup" else time_text
        values.append(
            (
                f"{scenario.title}, {row.name}",
                write(own) if own is not None else "–",
                write(typical) if typical is not None else "–",
            )
        )
    return OutlierRow(
        anchor=_anchor(host.id),
        name=host.name,
        address=host_file(host.id),
        hardware=names[host.hardware],
        values=tuple(values),
        differs=tuple((each.name, each.own, each.others) for each in outlier.differs),
    )


# What users filter and read hosts by.
_SHOWN_FACTS = ("kernel", "microcode", "governor", "SMT", "memory", "memory speed")


def _facts(
    comparison: HostComparison,
) -> Iterator[tuple[str, tuple[tuple[str, int], ...]]]:
    """What hosts have, and how many: the named facts and the labels that have several values."""
    labels = {name for host in comparison.hosts for name in host.facts if name.startswith("label ")}
    for name in (*_SHOWN_FACTS, *sorted(labels)):
        values: dict[str, int] = {}
        for host in comparison.hosts:
            if name in host.facts:
                values[host.facts[name]] = values.get(host.facts[name], 0) + 1
        if values:
            ordered = sorted(values.items(), key=lambda value: (-value[1], value[0]))
            yield name.removeprefix("label "), tuple(ordered[:_MOST_VALUES])


# More values of one fact are left out.
_MOST_VALUES = 8
