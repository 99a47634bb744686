"""Read the latest results of every host, one host at a time, with a cache beside the records."""

import itertools
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from corebound import errors
from corebound.analysis import hardware, host_comparison
from corebound.analysis.json_documents import hosts_document
from corebound.analysis.scenario_result import analyse_scenario
from corebound.present.hosts import classes_table
from corebound.present.shown import Shown
from corebound.records import atomic_write, cache, jsonl
from corebound.records.cache import CacheFile
from corebound.records.run_record import Run
from corebound.scenario.loader import load
from corebound.workflow.projects import Notify
from corebound.workflow.tunings import tuning_results

# A scenario that a host has not measured in so many runs is not compared. The time and the memory
# that this takes grow with the hosts, and not with their nightly runs.
_MOST_RUNS = 30


class _HostRun(Struct, frozen=True, kw_only=True):
    """What one run says of its host, as it is cached.

    Attributes:
        stamp: The version of the file that this was read from.
        selected: Whether the run measured a selection of cells only.
        faults: What could not be read.
    """

    stamp: str
    selected: bool
    host: host_comparison.HostSummary
    faults: tuple[errors.Fault, ...]


def read_hosts(
    records: Path, faults: list[errors.Fault], only: Collection[str] = ()
) -> Iterator[host_comparison.HostSummary]:
    """Read every host with the latest result of each scenario.

    Args:
        only: The names of the scenarios to read; empty reads all.
    """
    version = cache.code("analysis", "stats", "records", "scenario", "machine", "units.py")
    for _, files in itertools.groupby(jsonl.files(records), key=lambda file: file.parent):
        latest = list(files)[: -_MOST_RUNS - 1 : -1]
        host = _read_host(latest, records, version, faults)
        if host is not None:
            kept = tuple(
                scenario for scenario in host.scenarios if not only or scenario.name in only
            )
            yield replace(host, scenarios=kept)


def _read_host(
    files: list[Path], records: Path, version: str, faults: list[errors.Fault]
) -> host_comparison.HostSummary | None:
    """One host, from its latest runs, the latest first; None if none can be read."""
    name = f"hosts-{errors.encodable(files[0].parent.name)}"
    cache_file = CacheFile(dict[str, _HostRun], records, name, version=version)
    cached = cache_file.load() or {}
    runs: dict[str, _HostRun] = {}
    for file in files:
        known = cached.get(errors.encodable(file.name))
        with errors.collect_fault(file, faults):
            stamp = jsonl.stamp(file)
            run = known if known and known.stamp == stamp else _read_run(file, stamp)
            runs[errors.encodable(file.name)] = run
            faults += run.faults
    if runs != cached:
        cache_file.keep(runs)
    if not runs:
        return None
    return replace(next(iter(runs.values())).host, scenarios=_latest(runs.values()))


def _latest(runs: Collection[_HostRun]) -> tuple[host_comparison.HostScenario, ...]:
    """The latest result of each scenario; one of a selection of cells only if there is no other."""
    chosen: dict[str, tuple[bool, host_comparison.HostScenario]] = {}
    for run in runs:
        for scenario in run.host.scenarios:
            selected, known = chosen.get(scenario.name, (False, None))
            is_whole = selected and not run.selected
            if known is None or (is_whole and known.sha256 == scenario.sha256):
                chosen[scenario.name] = run.selected, scenario
    return tuple(scenario for _, (_, scenario) in sorted(chosen.items()))


def _read_run(file: Path, stamp: str) -> _HostRun:
    stored = jsonl.read(file)
    faults = list(stored.faults)
    launched = {launch.cell.scenario for launch in stored.launches}
    scenarios = []
    for source in stored.run.scenarios:
        if source.document.get("name") not in launched:
            continue
        try:
            result = analyse_scenario(stored.run, source, stored.launches)
        except errors.ScenarioFaults as error:
            faults += error.faults
            continue
        scenarios.append(host_comparison.summarise_scenario(result))
    return _HostRun(
        stamp=stamp,
        selected=bool(stored.run.only),
        host=_summary(stored.run, tuple(scenarios)),
        faults=tuple(faults),
    )


def _summary(
    run: Run, scenarios: tuple[host_comparison.HostScenario, ...]
) -> host_comparison.HostSummary:
    return host_comparison.HostSummary(
        id=run.host.id,
        name=run.host.name,
        hardware=hardware.hardware_class(run),
        facts=hardware.varying_facts(run),
        scenarios=scenarios,
    )


class HostResults(Shown, frozen=True, kw_only=True):
    """The results of all hosts, each relative to its own baseline.

    Attributes:
        comparison: The `classes` of hosts, the `scenarios` with their values by class, and the
            `outliers`.
    """

    comparison: host_comparison.HostComparison

    @property
    def document(self) -> dict[str, Any]:
        """The same as plain data, as `corebound compare --by host --json` prints it."""
        return hosts_document(self.comparison)

    def table(self) -> tuple[Sequence[str], list[tuple[str, ...]]]:
        """Each class of hosts with its hosts."""
        columns, rows = classes_table(self.comparison).in_words
        return [column.heading for column in columns], [*rows]


def compare_recorded_hosts(
    records: Path, scenario_files: Collection[Path], notify: Notify
) -> host_comparison.HostComparison:
    """Compare all hosts of a folder of records.

    Args:
        scenario_files: The scenarios to compare; empty for all.
        notify: Called with a warning for each thing that cannot be read.

    Raises:
        InputError: A scenario's file cannot be read, or there are no results of two hosts.
    """
    names = frozenset(map(_scenario_name, scenario_files))
    faults: list[errors.Fault] = []
    hosts = [host for host in read_hosts(records, faults, names) if host.scenarios]
    tunings = [
        result
        for result, _ in tuning_results(records, faults)
        if not names or result.source.document.get("name") in names
    ]
    for fault in faults:
        notify(f"warning: {fault}")
    if len(hosts) < 2:
        found = "one host has" if hosts else "no host has"
        raise errors.InputError(
            what=f"{found} results of {'these scenarios' if names else 'any scenario'};"
            " comparing hosts needs two.",
            where=str(records),
            fix="Copy the records of other hosts into this folder, or name another with --records.",
        )
    return host_comparison.compare_hosts(hosts, tunings)


def _scenario_name(file: Path) -> str:
    with errors.report_os_errors(
        "the scenario cannot be read", where=file, fix="Name a scenario's YAML file."
    ):
        data = atomic_write.read(file)
    return load(data, str(file)).name
