"""The results across hosts: by class, by host, the outliers and what is recommended."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

from corebound.analysis.hardware import HardwareClass
from corebound.analysis.host_comparison import (
    ClassResult,
    ConfigurationRow,
    HostComparison,
    Member,
    ScenarioAcross,
)
from corebound.analysis.wording import (
    TOO_WIDE,
    count,
    listed,
    relative_speed,
    speed_bounds,
    value_text,
    verdict_word,
)
from corebound.present.sections import (
    Column,
    Item,
    Items,
    Named,
    Section,
    Sentence,
    Table,
    Value,
)

By = Literal["host", "class"]

# More values of an outlier host are counted.
_MOST_ITEMS = 4
# More hosts of a class are counted.
_MOST_NAMES = 3


def hosts_sections(comparison: HostComparison, *, by: By, show_all: bool) -> tuple[Section, ...]:
    """What a terminal and Markdown show.

    Args:
        by: Whether each host has a row, or each class.
        show_all: Whether to list also what has no clear difference.
    """
    return (
        Sentence(_summary(comparison)),
        classes_table(comparison),
        *_scenario_tables(comparison, by=by, show_all=show_all),
        *((outliers_table(comparison),) if comparison.outliers else ()),
        *((advice_table(comparison),) if comparison.advice else ()),
    )


def _summary(comparison: HostComparison) -> str:
    """How many hosts, classes, scenarios and outliers there are."""
    parts = [
        count(len(comparison.hosts), "host"),
        count(len(comparison.classes), "class", "classes"),
        count(len(comparison.scenarios), "scenario"),
        count(len(comparison.outliers), "outlier host"),
    ]
    return ", ".join(parts)


def classes_table(comparison: HostComparison) -> Table:
    """The classes of hardware, with the hosts of each."""
    names = comparison.class_names
    too_few = [names[hardware] for hardware in comparison.too_few]
    return Table(
        title="Classes",
        columns=(Column("class"), Column("cores"), Column("hosts"), Column("")),
        rows=tuple(
            (
                names[hardware],
                hardware.shape,
                str(len(hosts)),
                listed([host.name for host in hosts], _MOST_NAMES),
            )
            for hardware, hosts in comparison.classes.items()
        ),
        notes=(f"Too few hosts to name outliers: {listed(too_few, _MOST_NAMES)}",)
        if too_few
        else (),
    )


_HEADINGS: dict[By, tuple[str, ...]] = {
    "class": ("configuration", "class", "hosts", "value", "95 % CI", "spread"),
    "host": ("configuration", "host", "class", "value", "95 % CI", ""),
}


def _scenario_tables(comparison: HostComparison, *, by: By, show_all: bool) -> Iterator[Table]:
    names = comparison.class_names
    what, values_of = ("configuration", _by_class) if by == "class" else ("value", _by_host)
    for scenario in comparison.scenarios:
        rows: list[tuple[Value, ...]] = []
        hidden = 0
        for row in scenario.rows:
            first = row.name if row.kind == "speedup" else f"{row.name} (baseline)"
            values, left_out = values_of(row, names, show_all=show_all)
            rows += [("" if index else first, *each) for index, each in enumerate(values)]
            hidden += left_out
        yield Table(
            title=f"{scenario.name}: {scenario.title}",
            columns=tuple(map(Column, _HEADINGS[by])),
            rows=tuple(rows),
            notes=(
                *_differences(scenario, names),
                *(
                    (f"{count(hidden, what)} without a clear difference; --all lists them.",)
                    if hidden
                    else ()
                ),
            ),
        )


def _differences(scenario: ScenarioAcross, names: dict[HardwareClass, str]) -> Iterator[str]:
    """On which classes the result of a configuration differs, and what is not compared."""
    for row in scenario.rows:
        if row.extremes is not None:
            high, low = row.extremes
            yield (
                f"Classes differ: {row.name} is {_of(high, row)} on {names[high.hardware]} and"
                f" {_of(low, row)} on {names[low.hardware]}."
            )
    if scenario.other_version:
        others = listed(scenario.other_version, _MOST_NAMES)
        yield f"Not compared, another version of this scenario: {others}"


def _by_class(
    row: ConfigurationRow, names: dict[HardwareClass, str], *, show_all: bool
) -> tuple[list[tuple[str, ...]], int]:
    """The values of each class, and whether the row is left out as not clear."""
    decided = any(each.verdict in {"faster", "slower"} for each in row.classes)
    if not (show_all or decided or row.differs or any(each.outliers for each in row.classes)):
        return [], row.kind == "speedup"
    return [(names[each.hardware], *_class_values(each, row)) for each in row.classes], 0


def _by_host(
    row: ConfigurationRow, names: dict[HardwareClass, str], *, show_all: bool
) -> tuple[list[tuple[str, ...]], int]:
    """The values of each host, and how many are left out as not clear."""
    members = [(each.hardware, member) for each in row.classes for member in each.members]
    shown: list[tuple[str, ...]] = [
        (member.host.name, names[hardware], *_host_values(member, row))
        for hardware, member in members
        if show_all
        or member.deviation.is_outlier
        or (row.kind == "speedup" and member.cell.verdict in {"faster", "slower"})
    ]
    return shown, len(members) - len(shown)


def _of(result: ClassResult, row: ConfigurationRow) -> str:
    return relative_speed(result.value, words=row.words) if result.value is not None else TOO_WIDE


def _class_values(result: ClassResult, row: ConfigurationRow) -> tuple[str, str, str, str]:
    """Hosts, value, interval and spread of one class in a row."""
    hosts = str(len(result.members))
    if result.outliers:
        hosts += f", {count(len(result.outliers), 'outlier')}"
    if result.value is None:
        reasons = list(dict.fromkeys(reason for _, reason in result.without))
        return hosts, "–", listed(reasons, 1), ""
    spread = result.spread
    if row.kind == "time":
        return hosts, value_text(result.value, row), "", spread
    sign = verdict_word(result.verdict or "inconclusive").sign
    interval = result.interval
    bounds = speed_bounds(*interval.ends) if interval is not None else TOO_WIDE
    return hosts, f"{sign} {relative_speed(result.value, words=row.words)}", bounds, spread


def _host_values(member: Member, row: ConfigurationRow) -> tuple[str, str, str]:
    """Value, interval and a mark for an outlier of one host in a row."""
    cell, mark = member.cell, "◎ outlier" if member.deviation.is_outlier else ""
    if row.kind == "time" or cell.speedup is None:
        return value_text(cell.time_ns, row), "", mark
    bounds = speed_bounds(*cell.speedup_bounds) if cell.speedup_bounds else cell.reason
    sign = verdict_word(cell.verdict or "inconclusive").sign
    return f"{sign} {relative_speed(cell.speedup, words=row.words)}", bounds, mark


def outliers_table(
    comparison: HostComparison, address: Callable[[str], str] = lambda _: ""
) -> Table:
    """The hosts that are far from their class, where, and what else differs.

    Args:
        address: The address of the page of a host, by its id.
    """
    names = comparison.class_names
    rows: list[tuple[Value, ...]] = []
    for outlier in comparison.outliers:
        host = outlier.host
        differs = tuple(
            Item(each.name, each.own, f"others {each.others}") for each in outlier.differs
        )
        farthest = sorted(outlier.rows, key=lambda entry: -abs(entry[2].deviation.log))
        rows.append(
            (
                Named(
                    host.name,
                    note=names[host.hardware],
                    link=address(host.id),
                    anchor=f"outlier-{host.id}",
                ),
                Items(tuple(_deviation(*entry) for entry in farthest), most=_MOST_ITEMS),
                Items(differs, most=_MOST_ITEMS) if differs else "nothing recorded",
            )
        )
    return Table(
        title="Outlier hosts",
        columns=(
            Column("host"),
            Column("far from its class in", "long"),
            Column("differs from its class in", "long"),
        ),
        rows=tuple(rows),
    )


def _deviation(scenario: ScenarioAcross, row: ConfigurationRow, member: Member) -> Item:
    of_class = row.of(member.host.hardware)
    typical = of_class.value if of_class is not None else None
    own, _ = member.cell.of(row.kind)
    write = partial(relative_speed, words=row.words)
    if row.kind == "time":
        write = partial(value_text, cell=row)
    return Item(
        f"{scenario.title}, {row.name}:",
        "–" if own is None else write(own),
        f"class {'–' if typical is None else write(typical)}",
    )


def advice_table(comparison: HostComparison) -> Table:
    """What `corebound tune` recommends by class, and on how many hosts."""
    names = comparison.class_names
    return Table(
        title="Recommended by corebound tune",
        columns=(Column("class"), Column("scenario"), Column("objective"), Column("configuration")),
        rows=tuple(
            (
                names.get(advice.hardware, advice.hardware.name),
                advice.scenario,
                advice.objective,
                Items(
                    tuple(
                        Item(name, aside=count(hosts, "host")) for name, hosts in advice.recommended
                    ),
                    most=len(advice.recommended),
                ),
            )
            for advice in comparison.advice
        ),
    )
