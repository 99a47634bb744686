"""The pages of one host and of all hosts: what holds on which class, and which are odd."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from corebound.analysis.host_comparison import (
    ConfigurationRow,
    HostComparison,
    ScenarioAcross,
    compare_hosts,
)
from corebound.analysis.host_records import HostRecords
from corebound.analysis.noise_floor import noise_floor_note
from corebound.analysis.suggested_commands import CALIBRATE, DOCTOR, TOPOLOGY, CommandLine
from corebound.analysis.wording import (
    Flag,
    Text,
    capital,
    count,
    day,
    listed,
    relative_speed,
    rich,
    strong,
)
from corebound.groups import grouped
from corebound.machine.doctor.result import HostCheck
from corebound.present.hosts import advice_table, outliers_table
from corebound.present.sections import Column, Fact, Named, Table, Value
from corebound.records.run_record import Run
from corebound.report.charts.intervals import class_axis
from corebound.report.elements import Content, Head, Hero, Page
from corebound.report.scenario.provenance import host_facts, topology_text
from corebound.report.urls import host_file, run_file
from corebound.stats.intervals import geometric_mean
from corebound.units import counted

# More hosts of one kind are counted in the notices.
_MOST_NAMED = 2
# More hosts are folded by class.
_MOST_OPEN = 40


def hosts_page(
    hosts: Sequence[HostRecords], *, now: str, comparison: HostComparison | None = None
) -> Page:
    """Build the page.

    Args:
        hosts: The hosts, at least one.
        now: ISO timestamp of the page.
        comparison: Their results; None if they are not known.
    """
    latest_first = sorted(hosts, key=lambda host: host.runs[-1].started_at, reverse=True)
    latest = latest_first[0].runs[-1]
    known = comparison or compare_hosts(())
    names = known.class_names
    verdict = _headline(known)
    rows = [(scenario, row) for scenario in known.scenarios for row in scenario.rows]
    best = [(each, row) for each in known.scenarios if (row := _best(each))]
    runs = sum(host.recorded for host in hosts)
    counted = f"{count(len(hosts), 'host')}, {count(runs, 'run')}."
    support = f"Latest run: {day(latest.started_at)} on {latest.host.name}."
    return Page(
        head=Head(
            title="Corebound: hosts",
            description="Every host with recorded runs.",
            made=f"Page made {day(now)}.",
        ),
        hero=Hero(
            title="Hosts",
            verdict=verdict or rich(counted),
            support=rich(f"{counted} {support}" if verdict else support),
            flags=tuple(_flags(known)) if known.scenarios else (),
        ),
        hosts=_host_tables(latest_first, {host.id: names[host.hardware] for host in known.hosts}),
        # Scenarios × classes: each class with its name and the number of its hosts.
        classes=tuple(
            (hardware, names[hardware], len(hosts)) for hardware, hosts in known.classes.items()
        ),
        # The configuration that is fastest over all classes, of each scenario.
        best=best,
        # All other configurations and the times of baselines.
        others=[row for row in rows if row not in best],
        axis=class_axis(
            [result for _, row in rows if row.kind == "speedup" for result in row.classes]
        ),
        outliers=outliers_table(known, host_file),
        facts=tuple(_facts(known)),
        advice=advice_table(known),
        command=CommandLine("corebound compare --by class"),
    )


def _host_tables(
    hosts: Sequence[HostRecords], classes: Mapping[str, str]
) -> tuple[tuple[str, Table], ...]:
    """The hosts; if they are many, those of each class, and last those that are not compared."""
    if len(hosts) <= _MOST_OPEN:
        return (("", _host_table(hosts, classes)),)
    groups = grouped(hosts, lambda host: classes.get(host.runs[-1].host.id, ""))
    ordered = sorted(groups.items(), key=lambda group: (not group[0], group[0]))
    return tuple((name or "Not compared", _host_table(own, classes)) for name, own in ordered)


def _host_table(hosts: Sequence[HostRecords], classes: Mapping[str, str]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for records in hosts:
        latest = records.runs[-1]
        host = latest.host
        rows.append(
            (
                Named(host.name, note=classes.get(host.id, ""), link=host_file(host.id)),
                Named(host.cpu_model, note=topology_text(host.topology)),
                host.kernel,
                counted(records.recorded),
                Named(day(latest.started_at), link=run_file(latest)),
            )
        )
    return Table(
        title="All hosts",
        columns=(
            Column("host"),
            Column("CPUs", "long"),
            Column("kernel"),
            Column("runs", "number"),
            Column("latest run"),
        ),
        rows=tuple(rows),
    )


def _best(scenario: ScenarioAcross) -> ConfigurationRow | None:
    """The configuration that is fastest over all classes; None without ratios."""
    rows = [row for row in scenario.rows if row.kind == "speedup" and _values(row)]
    return max(rows, key=lambda row: geometric_mean(_values(row)), default=None)


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
        word = row.words[row.classes[0].verdict == "slower"]
        sizes = sorted(max(value, 1 / value) for value in values)
        size = f"{sizes[0]:.2f}–{sizes[-1]:.2f}×" if len(sizes) > 1 else f"{sizes[0]:.2f}×"
        tail = " on every class of hosts." if len(values) > 1 else "."
        verb = "is" if row.metric is None else "has"
        of = "" if row.metric is None else f" {row.metric.name}"
        return rich(f"{scenario.title}: {row.name} {verb} ", strong(f"{size} {word}"), of, tail)
    for scenario, row in best:
        if row.extremes is not None:
            high, low = row.extremes
            return rich(
                f"{scenario.title}: {row.name} is ",
                strong(relative_speed(high.value or 1.0, words=row.words)),
                f" on {names[high.hardware]} and ",
                strong(relative_speed(low.value or 1.0, words=row.words)),
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
            for each in outliers
        ]
        yield Flag(
            tone="warn",
            sign="◎",
            title=count(len(outliers), "outlier host"),
            detail=listed(named, _MOST_NAMED),
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
        yield Flag(
            tone="plain",
            sign="?",
            title=f"{count(untested, 'host')} in classes too small to name outliers",
            detail=listed([names[hardware] for hardware in too_few], _MOST_NAMED),
        )


# What users filter and read hosts by.
_SHOWN_FACTS = ("kernel", "microcode", "governor", "SMT", "memory", "memory speed")


def _facts(comparison: HostComparison) -> Iterator[Fact]:
    """What hosts have, and how many: the named facts and the labels that have several values."""
    labels = {name for host in comparison.hosts for name in host.facts if name.startswith("label ")}
    for name in (*_SHOWN_FACTS, *sorted(labels)):
        values = Counter(host.facts[name] for host in comparison.hosts if name in host.facts)
        if values:
            ordered = sorted(values.items(), key=lambda value: (-value[1], value[0]))
            yield Fact(
                term=capital(name.removeprefix("label ")),
                value=", ".join(
                    f"{value} ({count(hosts, 'host')})" for value, hosts in ordered[:_MOST_VALUES]
                ),
            )


# More values of one fact are left out.
_MOST_VALUES = 8


# As many as a column can hold.
_MOST_STATES = 20


def host_page(records: HostRecords, *, now: str) -> Page:
    """Build the page of a host.

    Args:
        now: ISO timestamp of the page.
    """
    latest = records.runs[-1]
    host, topology = latest.host, topology_text(latest.host.topology)
    checked = [run for run in records.runs if run.preflight is not None]
    return Page(
        head=Head(
            title=f"Host {host.name}",
            description=topology,
            made=f"From its latest run, {day(latest.started_at)}; page made {day(now)}.",
        ),
        hero=Hero(
            title="Host",
            context=host.id,
            verdict=rich(f"{host.name}: {host.cpu_model}"),
            support=rich(f"{topology}. {count(records.recorded, 'run')} recorded."),
        ),
        host=host,
        records=records,
        facts=host_facts(latest),
        noise=tuple(
            Fact(
                term=f"{calibration.scenario}, {calibration.profile or 'no profile'}",
                value=noise_floor_note(
                    calibration, launches=max(each.launches for each in calibration.noise)
                ),
            )
            for calibration in records.calibrations
        ),
        checks=_checks(checked),
        checked_runs=f"each of {len(checked):,} runs" if len(checked) > 1 else "one run",
        topology=TOPOLOGY,
        doctor=DOCTOR,
        calibrate=CALIBRATE,
    )


def _checks(runs: Sequence[Run]) -> tuple[Content, ...]:
    """Checks that warn now come first, then those that warned before, then the others."""
    every = ((run, host_check) for run in runs for host_check in run.preflight or ())
    groups = grouped(every, lambda pair: pair[1].check)
    order = {"warning": 0, "ok": 1, "unavailable": 2}
    return tuple(
        sorted(
            map(_check, groups.values()),
            key=lambda row: (order[row.latest.state], -row.warned, row.latest.check),
        )
    )


def _check(results: Sequence[tuple[Run, HostCheck]]) -> Content:
    since, latest = results[-1]
    for earlier, result in reversed(results):
        if result.state != latest.state:
            break
        since = earlier
    states = [result.state for _, result in results]
    return Content(
        latest=latest,
        since=since,
        runs=len(states),
        warned=states.count("warning"),
        recent_states=tuple(
            (state, len(tuple(equal))) for state, equal in groupby(states[-_MOST_STATES:])
        ),
    )
