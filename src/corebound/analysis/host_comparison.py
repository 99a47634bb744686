"""Results across hosts: each host against its own baseline, then by class of hardware.

Ratios can be compared between classes, because each is of two configurations on one host.
Absolute times are compared only between hosts of one class.
"""

import itertools
import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.hardware import HardwareClass, hardware_class
from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.tuning import TuneResult
from corebound.analysis.wording import ONE_LAUNCH, TOO_WIDE, compared_bounds, full_name
from corebound.groups import grouped
from corebound.scenario.metrics import Metric, words_of
from corebound.stats import between_hosts
from corebound.stats.comparison import Verdict, verdict_of
from corebound.stats.intervals import NORMAL_REACH, Interval, is_usable_ratio
from corebound.stats.multiplicity import holm
from corebound.units import percent

# A class whose hosts share a value this often says what a host should have.
_COMMON_SHARE = 2 / 3
# Differences from the class are listed in this order; labels and other checks follow.
_FIRST_FACTS = (
    "microcode",
    "kernel",
    "governor",
    "SMT",
    "memory",
    "memory speed",
    "memory of nodes",
    "CPU quota",
)


# What a row compares. `speedup`: ratios to the host's own baseline. `time`: times of a baseline.
Kind = Literal["speedup", "time"]


class HostCell(Struct, frozen=True, kw_only=True):
    """What the launches of one configuration say on one host.

    Attributes:
        speedup: Its speed as a multiple of its own baseline's; None for the baseline.
        speedup_bounds: The 95 % interval of `speedup`; None with too few launches.
        time_ns: The time of an iteration, or of the metric by `Metric.as_time_ns`; None without
            launches that count.
        time_bounds_ns: Its 95 % interval.
        metric: What its command reports and is compared instead of its time, if it is.
        reason: Why it has no value, or no usable interval of it; empty if it has one.
    """

    key: str
    name: str
    speedup: float | None
    speedup_bounds: tuple[float, float] | None
    verdict: Verdict | None
    time_ns: float | None
    time_bounds_ns: tuple[float, float] | None
    metric: Metric | None = None
    reason: str = ""

    def of(self, kind: Kind) -> tuple[float | None, tuple[float, float] | None]:
        """Its value in a row of this kind, and the 95 % interval of that."""
        if kind == "speedup":
            return self.speedup, self.speedup_bounds
        return self.time_ns, self.time_bounds_ns


class HostScenario(Struct, frozen=True, kw_only=True):
    """The latest result of one scenario on one host, without its launches."""

    name: str
    title: str
    sha256: str
    margin: float
    run: str
    started_at: str
    cells: tuple[HostCell, ...]


class HostSummary(Struct, frozen=True, kw_only=True):
    """A host: what it is and the latest result of each scenario.

    Attributes:
        facts: What may differ between hosts of a class, by name.
    """

    id: str
    name: str
    hardware: HardwareClass
    facts: dict[str, str]
    scenarios: tuple[HostScenario, ...]


def summarise_scenario(result: ScenarioResult) -> HostScenario:
    """Keep of a scenario's result what a comparison of hosts needs."""
    return HostScenario(
        name=result.scenario.name,
        title=result.scenario.title,
        sha256=result.source.sha256,
        margin=result.measure.margin,
        run=result.run.id,
        started_at=result.run.started_at,
        cells=tuple(
            _host_cell(cell.key, full_name(cell), found)
            for cell in result.planned
            if (found := result.find(cell)) is not None
        ),
    )


def _host_cell(key: str, name: str, cell: CellResult) -> HostCell:
    comparison, interval = cell.comparison, cell.summary.interval
    bounds = comparison.interval if comparison is not None else None
    reasons = (launch.reason for launch in cell.launches if launch.reason)
    return HostCell(
        key=key,
        name=name,
        speedup=comparison.speedup_ratio if comparison is not None else None,
        speedup_bounds=bounds.ends if bounds else None,
        verdict=comparison.verdict if comparison is not None else None,
        time_ns=cell.summary.median_ns,
        time_bounds_ns=interval.ends if interval else None,
        metric=cell.cell.metric,
        reason=_missing_interval(cell) if cell.is_measured else next(reasons, "no launch counts"),
    )


def _missing_interval(cell: CellResult) -> str:
    """Why a measured cell has no usable interval; empty if it has one."""
    if cell.comparison is not None:
        return compared_bounds(cell.comparison) if cell.comparison.interval is None else ""
    return ONE_LAUNCH if cell.summary.interval is None else ""


class Member(Struct, frozen=True, kw_only=True):
    """One host's value in a row, and how far it is from its class."""

    host: HostSummary
    cell: HostCell
    deviation: between_hosts.Deviation


class ClassResult(Struct, frozen=True, kw_only=True):
    """One class's value of a configuration.

    Attributes:
        members: The hosts with a usable value.
        estimate: Of the hosts that are outliers in no row; None without any.
        interval: Of the class; of the host itself if there is only one.
        verdict: The verdict of a speed-up; None for times and without an interval.
        without: Hosts of the class without a usable value, with the reason.
    """

    hardware: HardwareClass
    members: tuple[Member, ...]
    estimate: between_hosts.ClassEstimate | None
    interval: Interval | None
    verdict: Verdict | None
    without: tuple[tuple[str, str], ...]

    @property
    def value(self) -> float | None:
        """The class's speed-up or time; None without any host."""
        return math.exp(self.estimate.log) if self.estimate is not None else None

    @property
    def outliers(self) -> tuple[Member, ...]:
        """The hosts that are far from the others."""
        return tuple(member for member in self.members if member.deviation.is_outlier)

    @property
    def spread(self) -> str:
        """How much hosts differ, in per cent; empty for one host."""
        spread = self.estimate.spread if self.estimate is not None else None
        return "" if spread is None else percent(math.expm1(spread))


class ConfigurationRow(Struct, frozen=True, kw_only=True):
    """One configuration of a scenario in all classes.

    Attributes:
        kind: Whether the values are speed-ups or times.
        metric: The metric that is compared instead of times, if one is.
        classes: The result of each class that has one.
        difference: The test whether the classes have equal values; None for times.
        differs: Whether they differ significantly, corrected for all rows.
    """

    key: str
    name: str
    kind: Kind
    metric: Metric | None
    classes: tuple[ClassResult, ...] = ()
    difference: between_hosts.ClassDifference | None = None
    differs: bool = False

    @property
    def words(self) -> tuple[str, str]:
        """What a better value of it is called, and what a worse one is called."""
        return words_of(self.metric)

    def of(self, hardware: HardwareClass) -> ClassResult | None:
        """The result of a class."""
        return next((each for each in self.classes if each.hardware == hardware), None)

    @property
    def extremes(self) -> tuple[ClassResult, ClassResult] | None:
        """The classes with the largest and the smallest value; None if they do not differ."""
        if not self.differs:
            return None
        several = [each for each in self.classes if each.estimate and each.estimate.error]
        ordered = sorted(several, key=lambda each: each.value or 0.0)
        return ordered[-1], ordered[0]


class ScenarioAcross(Struct, frozen=True, kw_only=True):
    """A scenario on several hosts: its configurations, and hosts with another version of it."""

    name: str
    title: str
    rows: tuple[ConfigurationRow, ...]
    other_version: tuple[str, ...]


class Difference(Struct, frozen=True, kw_only=True):
    """What a host has and most others of its class do not."""

    name: str
    own: str
    others: str


class OutlierHost(Struct, frozen=True, kw_only=True):
    """A host that is far from its class, in which rows, and what else differs."""

    host: HostSummary
    rows: tuple[tuple[ScenarioAcross, ConfigurationRow, Member], ...]
    differs: tuple[Difference, ...]


class ClassAdvice(Struct, frozen=True, kw_only=True):
    """What `corebound tune` recommends on the hosts of one class.

    Attributes:
        recommended: (configuration, number of hosts), the most frequent first; the configuration
            is what tune says instead if it recommends none.
    """

    hardware: HardwareClass
    scenario: str
    objective: str
    recommended: tuple[tuple[str, int], ...]


class HostComparison(Struct, frozen=True, kw_only=True):
    """The results of several hosts."""

    hosts: tuple[HostSummary, ...]
    scenarios: tuple[ScenarioAcross, ...]
    outliers: tuple[OutlierHost, ...]
    advice: tuple[ClassAdvice, ...]

    @property
    def classes(self) -> dict[HardwareClass, tuple[HostSummary, ...]]:
        """The hosts of each class; the class with the most hosts first."""
        groups = grouped(self.hosts, lambda host: host.hardware)
        ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
        return {hardware: tuple(hosts) for hardware, hosts in ordered}

    @property
    def too_few(self) -> tuple[HardwareClass, ...]:
        """The classes of too few hosts to name outliers, the largest first."""
        tested = {
            each.hardware
            for scenario in self.scenarios
            for row in scenario.rows
            for each in row.classes
            if any(member.deviation.limit is not None for member in each.members)
        }
        return tuple(hardware for hardware in self.classes if hardware not in tested)

    @property
    def class_names(self) -> dict[HardwareClass, str]:
        """A distinct name for each class: a shared label is refined by CPU and shape."""
        frequency = Counter(hardware.name for hardware in self.classes)
        return {
            hardware: hardware.name
            if frequency[hardware.name] == 1
            else f"{hardware.label}: {replace(hardware, label='').name}"
            for hardware in self.classes
        }


def compare_hosts(
    hosts: Sequence[HostSummary], tunings: Iterable[TuneResult] = ()
) -> HostComparison:
    """Compare hosts by the latest result of each scenario.

    Hosts that measured another version of a scenario than most are not compared in it.

    Args:
        tunings: Recommendations of `corebound tune` on any host.
    """
    latest = {host.id: host for host in hosts}
    ordered = tuple(sorted(latest.values(), key=lambda host: (host.name, host.id)))
    names = sorted({scenario.name for host in ordered for scenario in host.scenarios})
    scenarios = _judge([_draft(name, ordered) for name in names])
    return HostComparison(
        hosts=ordered,
        scenarios=scenarios,
        outliers=_outlier_hosts(ordered, scenarios),
        advice=tuple(_advice(tunings)),
    )


class _Group(Struct, frozen=True, kw_only=True):
    """The values of one class in one row, before they are judged."""

    hardware: HardwareClass
    values: tuple[tuple[HostSummary, HostCell, between_hosts.HostValue], ...]
    without: tuple[tuple[str, str], ...]


class _Draft(Struct, frozen=True, kw_only=True):
    """A row before it is judged."""

    row: ConfigurationRow
    margin: float
    groups: tuple[_Group, ...]


def _draft(name: str, hosts: Sequence[HostSummary]) -> tuple[ScenarioAcross, Sequence[_Draft]]:
    """A scenario without its rows, and their drafts."""
    own = [
        (host, scenario) for host in hosts for scenario in host.scenarios if scenario.name == name
    ]
    versions = Counter(scenario.sha256 for _, scenario in own)
    newest = {
        sha256: max(scenario.started_at for _, scenario in own if scenario.sha256 == sha256)
        for sha256 in versions
    }
    version = max(versions, key=lambda sha256: (versions[sha256], newest[sha256]))
    same = [(host, scenario) for host, scenario in own if scenario.sha256 == version]
    example = max((scenario for _, scenario in same), key=lambda scenario: scenario.started_at)
    cells: dict[str, dict[str, HostCell]] = {}
    for host, scenario in same:
        for cell in scenario.cells:
            cells.setdefault(cell.key, {})[host.id] = cell
    by_class = grouped([host for host, _ in same], lambda host: host.hardware)
    drafts = []
    for key, by_host in cells.items():
        has_ratio = any(cell.speedup is not None for cell in by_host.values())
        kind: Kind = "speedup" if has_ratio else "time"
        first = next(iter(by_host.values()))
        drafts.append(
            _Draft(
                row=ConfigurationRow(key=key, name=first.name, kind=kind, metric=first.metric),
                margin=example.margin,
                groups=tuple(
                    _group(hardware, members, by_host, kind)
                    for hardware, members in sorted(by_class.items())
                ),
            )
        )
    others = tuple(host.name for host, scenario in own if scenario.sha256 != version)
    return ScenarioAcross(name=name, title=example.title, rows=(), other_version=others), drafts


def _group(
    hardware: HardwareClass,
    hosts: Sequence[HostSummary],
    by_host: Mapping[str, HostCell],
    kind: Kind,
) -> _Group:
    values: list[tuple[HostSummary, HostCell, between_hosts.HostValue]] = []
    without: list[tuple[str, str]] = []
    for host in hosts:
        cell = by_host.get(host.id)
        value = host_value(cell, kind) if cell is not None else None
        if cell is not None and value is not None:
            values.append((host, cell, value))
        else:
            reason = cell.reason if cell is not None else "not measured"
            without.append((host.name, reason or TOO_WIDE))
    return _Group(hardware=hardware, values=tuple(values), without=tuple(without))


def host_value(cell: HostCell, kind: Kind) -> between_hosts.HostValue | None:
    """A host's value with the variance of its error; None without a usable interval.

    The variance is that of the normal value with the same 95 % interval. With few launches
    Student's interval is wider than that of a known variance, so it is at least the variance.
    """
    ratio, bounds = cell.of(kind)
    if ratio is None or bounds is None or not is_usable_ratio(*bounds):
        return None
    error = math.log(bounds[1] / bounds[0]) / 2 / NORMAL_REACH
    # A clock coarser than the differences between launches gives an interval without width.
    return between_hosts.HostValue(log=math.log(ratio), variance=max(error, 1e-6) ** 2)


def _judge(
    scenarios: Sequence[tuple[ScenarioAcross, Sequence[_Draft]]],
) -> tuple[ScenarioAcross, ...]:
    """Find outliers and differences among all rows of all scenarios together."""
    drafts = [draft for _, own in scenarios for draft in own]
    groups = [group for draft in drafts for group in draft.groups]
    tested = between_hosts.deviations(
        [[value for _, _, value in group.values] for group in groups],
        [[host.id for host, _, _ in group.values] for group in groups],
    )
    outliers = frozenset(
        host.id
        for group, own in zip(groups, tested, strict=True)
        for (host, _, _), deviation in zip(group.values, own, strict=True)
        if deviation.is_outlier
    )
    rest = iter(tested)
    classes = [
        tuple(_class_result(group, next(rest), draft, outliers) for group in draft.groups)
        for draft in drafts
    ]
    tests = [
        between_hosts.compare_classes([each.estimate for each in own if each.estimate is not None])
        if draft.row.kind == "speedup"
        else None
        for draft, own in zip(drafts, classes, strict=True)
    ]
    p_values = [test.p_value if test is not None else None for test in tests]
    differing = holm(p_values, alpha=between_hosts.FLEET_ALPHA)
    judged = (
        replace(draft.row, classes=own, difference=test, differs=differs)
        for draft, own, test, differs in zip(drafts, classes, tests, differing, strict=True)
    )
    return tuple(
        replace(scenario, rows=tuple(itertools.islice(judged, len(own))))
        for scenario, own in scenarios
    )


def _class_result(
    group: _Group,
    tested: Sequence[between_hosts.Deviation],
    draft: _Draft,
    outliers: Container[str],
) -> ClassResult:
    members = tuple(
        Member(host=host, cell=cell, deviation=deviation)
        for (host, cell, _), deviation in zip(group.values, tested, strict=True)
    )
    agreeing = [(cell, value) for host, cell, value in group.values if host.id not in outliers]
    estimate = between_hosts.estimate_class([value for _, value in agreeing]) if agreeing else None
    interval = estimate.interval if estimate is not None else None
    if len(agreeing) == 1:
        _, bounds = agreeing[0][0].of(draft.row.kind)
        if bounds is not None:
            interval = Interval(low=bounds[0], high=bounds[1])
    is_ratio = draft.row.kind == "speedup" and interval is not None
    return ClassResult(
        hardware=group.hardware,
        members=members,
        estimate=estimate,
        interval=interval,
        verdict=verdict_of(interval, draft.margin) if is_ratio else None,
        without=group.without,
    )


def _outlier_hosts(
    hosts: Sequence[HostSummary], scenarios: Sequence[ScenarioAcross]
) -> tuple[OutlierHost, ...]:
    rows: dict[str, list[tuple[ScenarioAcross, ConfigurationRow, Member]]] = {}
    for scenario in scenarios:
        for row in scenario.rows:
            for each in row.classes:
                for member in each.outliers:
                    rows.setdefault(member.host.id, []).append((scenario, row, member))
    by_id = {host.id: host for host in hosts}
    found = [
        OutlierHost(
            host=by_id[host],
            rows=tuple(own),
            differs=differences(
                by_id[host],
                [
                    other
                    for other in hosts
                    if other.hardware == by_id[host].hardware and other.id not in rows
                ],
            ),
        )
        for host, own in rows.items()
    ]
    return tuple(sorted(found, key=lambda outlier: (-len(outlier.rows), outlier.host.name)))


def differences(host: HostSummary, others: Sequence[HostSummary]) -> tuple[Difference, ...]:
    """What a host has that most others of its class do not, the likeliest causes first.

    Args:
        others: The others of its class. What they do not agree about is no difference.
    """
    result = []
    names = {name for each in (host, *others) for name in each.facts}
    for name in dict.fromkeys((*_FIRST_FACTS, *sorted(names))):
        values = Counter(other.facts.get(name, "") for other in others)
        if not values:
            continue
        (common, number), own = values.most_common(1)[0], host.facts.get(name, "")
        if own != common and number >= _COMMON_SHARE * len(others):
            result.append(Difference(name=name, own=own or "unknown", others=common or "unknown"))
    return tuple(result)


def _advice(tunings: Iterable[TuneResult]) -> Iterator[ClassAdvice]:
    groups: dict[tuple[HardwareClass, str, str], Counter[str]] = {}
    for result in tunings:
        key = (
            hardware_class(result.run),
            str(result.source.document.get("title") or result.source.document.get("name")),
            result.tuning.objective,
        )
        named = full_name(result.recommended) if result.recommended is not None else result.advice
        groups.setdefault(key, Counter())[named] += 1
    for (hardware, scenario, objective), counts in sorted(groups.items()):
        yield ClassAdvice(
            hardware=hardware,
            scenario=scenario,
            objective=objective,
            recommended=tuple(counts.most_common()),
        )
