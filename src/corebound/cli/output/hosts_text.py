"""The results across hosts as text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from rich.table import Table
from rich.text import Text

from corebound import text as corebound_text
from corebound.analysis.host_comparison import (
    ClassResult,
    ConfigurationRow,
    HardwareClass,
    HostComparison,
    Member,
    OutlierHost,
)
from corebound.analysis.wording import NO_ESTIMATE, and_more, count, relative_speed, speed_bounds
from corebound.cli.output.console import Console, print_table
from corebound.cli.output.verdicts import SIGNS, duration_text

By = Literal["host", "class"]
# (title, headings, rows, notes below)
Section = tuple[str, tuple[str, ...], list[tuple[str, ...]], tuple[str, ...]]

_NO_ROWS = "No configuration is faster or slower in any class; --all lists them."
# More differences of an outlier host are counted.
_MOST_DIFFERENCES = 3


def print_hosts(comparison: HostComparison, console: Console, *, by: By, show_all: bool) -> None:
    """Print the comparison in 80 columns."""
    console.print(_line(summary(comparison)))
    for title, headings, rows, notes in _sections(comparison, by=by, show_all=show_all):
        console.print()
        console.print(_line(title))
        if rows:
            table = Table(box=None, padding=(0, 1), header_style="")
            for heading in headings:
                table.add_column(heading, overflow="fold")
            for row in rows:
                table.add_row(*map(_line, row))
            print_table(table, console)
        for note in notes:
            console.print(_line(note))


def markdown_hosts(comparison: HostComparison, *, by: By, show_all: bool) -> str:
    """The comparison as Markdown."""
    lines = [corebound_text.markdown(summary(comparison))]
    for title, headings, rows, notes in _sections(comparison, by=by, show_all=show_all):
        lines += ["", f"### {corebound_text.markdown(title)}", ""]
        if rows:
            lines += [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
            lines += [f"| {' | '.join(map(corebound_text.markdown, row))} |" for row in rows]
            lines.append("")
        lines += map(corebound_text.markdown, notes)
    return "\n".join(lines)


def _line(text: str) -> Text:
    return Text(corebound_text.one_line(text))


def summary(comparison: HostComparison) -> str:
    """How many hosts, classes, scenarios and outliers there are."""
    parts = [
        count(len(comparison.hosts), "host"),
        count(len(comparison.classes), "class", "classes"),
        count(len(comparison.scenarios), "scenario"),
        count(len(comparison.outliers), "outlier host"),
    ]
    return ", ".join(parts)


def _sections(comparison: HostComparison, *, by: By, show_all: bool) -> Iterator[Section]:
    names = comparison.class_names
    yield _classes(comparison, names)
    if by == "class":
        yield from _scenarios(comparison, names, show_all=show_all)
    else:
        yield from _hosts(comparison, names, show_all=show_all)
    if comparison.outliers:
        yield (
            "Outlier hosts",
            ("host", "class", "far from its class in", "differs from its class in"),
            [_outlier(outlier, names) for outlier in comparison.outliers],
            (),
        )
    if comparison.advice:
        yield (
            "Recommended by corebound tune",
            ("class", "scenario", "objective", "configuration"),
            [
                (
                    names.get(advice.hardware, advice.hardware.name),
                    advice.scenario,
                    advice.objective,
                    ", ".join(f"{name} ({count(n, 'host')})" for name, n in advice.recommended),
                )
                for advice in comparison.advice
            ],
            (),
        )


def _classes(comparison: HostComparison, names: dict[HardwareClass, str]) -> Section:
    rows: list[tuple[str, ...]] = [
        (names[hardware], hardware.shape, str(len(hosts)), _listed([h.name for h in hosts]))
        for hardware, hosts in comparison.classes.items()
    ]
    too_few = [names[hardware] for hardware in comparison.too_few]
    notes = (f"Too few hosts to name outliers: {_listed(too_few)}",) if too_few else ()
    return "Classes", ("class", "cores", "hosts", ""), rows, notes


def _listed(names: Sequence[str], most: int = 3) -> str:
    return " ".join(filter(None, (", ".join(names[:most]), and_more(len(names) - most))))


def _scenarios(
    comparison: HostComparison, names: dict[HardwareClass, str], *, show_all: bool
) -> Iterator[Section]:
    for scenario in comparison.scenarios:
        rows: list[tuple[str, ...]] = []
        hidden = 0
        for row in scenario.rows:
            decided = any(each.verdict in {"faster", "slower"} for each in row.classes)
            if not (show_all or decided or row.differs or _has_outliers(row)):
                hidden += row.kind == "speedup"
                continue
            first = row.name if row.kind == "speedup" else f"{row.name} (baseline)"
            for each in row.classes:
                rows.append((first, names[each.hardware], *class_values(each, row)))
                first = ""
        notes = [
            f"Classes differ: {row.name} is {_of(high)} on {names[high.hardware]} and {_of(low)}"
            f" on {names[low.hardware]}."
            for row in scenario.rows
            if row.extremes is not None
            for high, low in [row.extremes]
        ]
        if hidden:
            notes.append(
                f"{count(hidden, 'configuration')} without a clear difference; --all lists them."
            )
        if scenario.other_version:
            notes.append(
                f"Not compared, another version of this scenario: {_listed(scenario.other_version)}"
            )
        headings = ("configuration", "class", "hosts", "value", "95 % CI", "spread")
        yield f"{scenario.name}: {scenario.title}", headings, rows, tuple(notes)


def _has_outliers(row: ConfigurationRow) -> bool:
    return any(each.outliers for each in row.classes)


def _of(result: ClassResult) -> str:
    return relative_speed(result.value) if result.value is not None else NO_ESTIMATE


def class_values(result: ClassResult, row: ConfigurationRow) -> tuple[str, str, str, str]:
    """Hosts, value, interval and spread of one class in a row."""
    hosts = str(len(result.members))
    if result.outliers:
        hosts += f", {count(len(result.outliers), 'outlier')}"
    if result.value is None:
        reasons = list(dict.fromkeys(reason for _, reason in result.without))
        return hosts, "–", _listed(reasons, most=1), ""
    spread = result.spread
    if row.kind == "time":
        return hosts, duration_text(result.value), "", spread
    sign = SIGNS[result.verdict or "inconclusive"]
    interval = result.interval
    bounds = speed_bounds(interval.low, interval.high) if interval is not None else NO_ESTIMATE
    return hosts, f"{sign} {relative_speed(result.value)}", bounds, spread


def _hosts(
    comparison: HostComparison, names: dict[HardwareClass, str], *, show_all: bool
) -> Iterator[Section]:
    for scenario in comparison.scenarios:
        rows: list[tuple[str, ...]] = []
        hidden = 0
        for row in scenario.rows:
            first = row.name if row.kind == "speedup" else f"{row.name} (baseline)"
            for each in row.classes:
                for member in each.members:
                    verdict = member.cell.verdict
                    if not (show_all or member.deviation.is_outlier) and (
                        row.kind == "time" or verdict not in {"faster", "slower"}
                    ):
                        hidden += 1
                        continue
                    rows.append(
                        (first, member.host.name, names[each.hardware], *host_values(member, row))
                    )
                    first = ""
        notes = (f"{count(hidden, 'value')} without a clear difference; --all lists them.",)
        headings = ("configuration", "host", "class", "value", "95 % CI", "")
        yield f"{scenario.name}: {scenario.title}", headings, rows, notes if hidden else ()


def host_values(member: Member, row: ConfigurationRow) -> tuple[str, str, str]:
    """Value, interval and a mark for an outlier of one host in a row."""
    cell, mark = member.cell, "◎ outlier" if member.deviation.is_outlier else ""
    if row.kind == "time" or cell.speedup is None:
        return duration_text(cell.time_ns), "", mark
    bounds = speed_bounds(*cell.speedup_bounds) if cell.speedup_bounds else NO_ESTIMATE
    sign = SIGNS[cell.verdict or "inconclusive"]
    return f"{sign} {relative_speed(cell.speedup)}", bounds, mark


def _outlier(outlier: OutlierHost, names: dict[HardwareClass, str]) -> tuple[str, ...]:
    scenario, row, member = max(outlier.rows, key=lambda entry: abs(entry[2].deviation.log))
    value = host_values(member, row)[0]
    where = f"{scenario.name}, {row.name}: {value}"
    more = and_more(len(outlier.rows) - 1)
    named = [f"{d.name} {d.own}, others {d.others}" for d in outlier.differs]
    return (
        outlier.host.name,
        names[outlier.host.hardware],
        f"{where} {more}".strip(),
        "; ".join(named[:_MOST_DIFFERENCES]) or "nothing recorded",
    )
