"""Recorded results: load them, filter them, read them as tables, and compare them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.peak_memory import judged_by
from corebound.analysis.scenario_result import ScenarioResult, analyse_scenario
from corebound.api import comparison as compared
from corebound.api import tables
from corebound.api.arguments import checked
from corebound.api.comparison import Comparison
from corebound.errors import Fault, InputError
from corebound.exchange import run_export
from corebound.exchange.run_export import ExportedCell
from corebound.records import jsonl
from corebound.records.decisions import DECISIONS_FILE, State
from corebound.records.history import Series
from corebound.records.jsonl import RECORDS, Stored
from corebound.records.run_record import Commit, Run
from corebound.scenario.cell import axes_of_key
from corebound.scenario.matrix import axis_text
from corebound.scenario.metrics import JudgedBy
from corebound.workflow.compare import compare_recorded
from corebound.workflow.projects import CONFIG
from corebound.workflow.recorded_runs import LaunchLog, launch_log, recorded_result
from corebound.workflow.regressions import analyse_history, confirm_open_changes, record_decision
from corebound.workflow.resolve_refs import resolve_revision
from corebound.workflow.run_index import drop_unreadable_scenarios, read_suite

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from corebound.api.regressions import Regressions
    from corebound.workflow.hosts import HostResults

Value: TypeAlias = str | int | float | bool
Axes: TypeAlias = Mapping[str, Value | Sequence[Value]]


class Selection(Struct, frozen=True, kw_only=True):
    """What `Results.filter` keeps; None and an empty mapping keep everything."""

    scenario: str | None = None
    host: str | None = None
    commit: str | None = None
    run: str | None = None
    axes: Mapping[str, frozenset[str]] = {}
    metric: JudgedBy = "time"

    def has_run(self, run: Run) -> bool:
        """Whether a run may have something that is kept."""
        return (
            (self.run is None or run.id.startswith(self.run))
            and self._has_host(run.host.id, run.host.name)
            and any(self.has_scenario(str(source.document["name"])) for source in run.scenarios)
        )

    def has_scenario(self, name: str) -> bool:
        """Whether the results of a scenario are kept."""
        return self.scenario is None or fnmatchcase(name, self.scenario)

    def has_axes(self, axes: Mapping[str, str]) -> bool:
        """Whether a configuration is kept."""
        return all(axes.get(axis) in values for axis, values in self.axes.items())

    def has_commit(self, commit: Commit | None) -> bool:
        """Whether the results of a commit are kept."""
        return self.commit is None or (
            commit is not None
            and (commit.sha.startswith(self.commit) or commit.name == self.commit)
        )

    def has_series(self, series: Series) -> bool:
        """Whether a series is kept; its points are selected separately."""
        return (
            self.has_scenario(series.scenario)
            and self._has_host(series.host, series.host_name)
            and self.has_axes(axes_of_key(series.cell))
        )

    def _has_host(self, *names: str) -> bool:
        return self.host is None or any(fnmatchcase(name, self.host) for name in names)


class RunReader(Struct, frozen=True, kw_only=True):
    """A run, and the function that reads its launches."""

    run: Run
    read: Callable[[], Stored]


class Results:
    """Recorded results, or those of one measurement; what they hold is read when it is used."""

    def __init__(
        self,
        runs: Sequence[RunReader],
        *,
        records: Path | None = None,
        selection: Selection | None = None,
    ) -> None:
        """Take runs, and the folder of their records if there is one; `load` does that."""
        self._runs = tuple(runs)
        self._records = records
        self._selection = selection or Selection()

    @checked
    def filter(
        self,
        *,
        scenario: str | None = None,
        host: str | None = None,
        commit: str | None = None,
        run: str | None = None,
        axes: Axes | None = None,
        metric: JudgedBy | None = None,
    ) -> Results:
        """The results that match every argument.

        Args:
            scenario: The scenario's name, or a shell pattern of it: `resnet*`.
            host: The host's id or name, or a pattern.
            commit: The start of a commit's hash, or a name that git knows in the current folder.
            run: The start of a run's id.
            axes: Values by axis; one of several values in a list:
                `{"threads": [1, 2], "binding": "none"}`.
            metric: What everything is judged by: `time`, which is the value that a command reports
                if it reports one, or `memory`, the peak RSS.
        """
        given = {
            "scenario": scenario,
            "host": host,
            "commit": commit if commit is None else _hash_of(commit),
            "run": run,
            "metric": metric,
            "axes": {
                **self._selection.axes,
                **{axis: _texts(values) for axis, values in (axes or {}).items()},
            },
        }
        changes = {name: value for name, value in given.items() if value is not None}
        return Results(
            self._runs, records=self._records, selection=replace(self._selection, **changes)
        )

    def runs(self) -> pd.DataFrame:
        """One row for each run: its host, commit and scenarios.

        Columns: run, started_at (ISO 8601, UTC), host_id, host, cpu_model, kernel, commit, subject,
        dirty, profile, scenarios (names, separated by commas), corebound (its version).
        """
        return tables.runs(
            stored.run
            for stored in self._selected_runs()
            if self._selection.has_commit(stored.run.commit)
        )

    def launches(self) -> pd.DataFrame:
        """One row for each launch, whatever its status.

        Columns: run, started_at, host_id, host, commit, committed_at, dirty, tree, scenario, cell,
        environment, launch, block, launched_at, status, reason, median_ns (of its iterations after
        warm-up), p99_ns, cpu_median_ns, iterations (used), settled, duration_ns (of the process),
        if a command reports one its metric with unit, better and value, and `axis_NAME` for each
        axis.
        """
        return run_export.table(self._cells())

    def iterations(self) -> pd.DataFrame:
        """One row for each timed iteration, warm-up included.

        Columns: run, started_at, host_id, host, commit, scenario, cell, launch, block, worker,
        iteration (from 0), counts (whether the launch's median uses it), disturbed, wall_ns,
        cpu_ns, and `axis_NAME` for each axis.
        """
        return tables.iterations(self._cells())

    def comparisons(self) -> pd.DataFrame:
        """One row for each configuration that has a baseline, in each run.

        Columns: run, started_at, host_id, host, commit, scenario, cell, baseline (its cell),
        baseline_median_ns, median_ns with its 95 % interval (median_low_ns, median_high_ns),
        speedup_ratio (above 1 is faster) with its 95 % interval (speedup_low_ratio,
        speedup_high_ratio), verdict, is_significant (after correction for the scenario's
        comparisons), p_value, pairs, launches_needed, margin_ratio, and `axis_NAME` for each axis.
        """
        return tables.comparisons(self._scenario_results())

    def history(self) -> pd.DataFrame:
        """One row for each point of each series, own and imported, oldest first.

        Columns: project (of an imported history), scenario, cell, host_id, host, unit, at
        (ISO 8601, UTC), run, commit, value (in `unit`) with its interval (low, high), of a ratio
        to an anchor both values (head_value, anchor_value), launches (how many are behind it),
        missing (why there is no value), and `axis_NAME` for each axis.
        """
        return tables.history(self.series())

    def operators(self) -> pd.DataFrame:
        """One row for each operator of each profiled configuration, in each run.

        Columns: run, started_at, host_id, host, commit, scenario, cell, launch, operator, calls
        (an iteration), total_ns (an iteration) with the least and the most of comparable profiles
        (total_low_ns, total_high_ns), share_ratio (of the iteration), quiet_ns, call_mean_ns,
        call_min_ns, call_max_ns, and `axis_NAME` for each axis.
        """
        return tables.operators(self._scenario_results())

    @checked
    def compare(
        self, before: str | Axes, after: str | Axes, *, project: str | None = None
    ) -> Comparison:
        """Compare two runs or commits, or two configurations.

        Args:
            before: A run (its id, the start of it, or its file) or a commit (its hash, a tag or a
                branch); or a configuration by its axes: `{"threads": 1}`.
            after: What to compare with it, of the same kind.
            project: The imported project whose commits to compare, if several have both.

        Raises:
            InputError: A name matches nothing or several, or no configuration is comparable.
        """
        if isinstance(before, str) and isinstance(after, str):
            return self._compare_recorded(before, after, project)
        if isinstance(before, str) or isinstance(after, str):
            raise InputError(
                what=f"{before!r} and {after!r} are of different kinds.",
                where="compare",
                fix="Name two runs, two commits, or two configurations.",
            )
        return compared.of_configurations(
            tuple(self._scenario_results()), *(_axes_texts(axes) for axes in (before, after))
        )

    @checked
    def hosts(self, *scenario_files: str | PathLike[str]) -> HostResults:
        """Compare all hosts of the records, as `corebound compare --by host` and `--by class` do.

        All hosts of the folder take part, whatever `filter` has selected.

        Args:
            scenario_files: The scenarios to compare; without any, all.

        Raises:
            InputError: The results have no folder of records or are of one host only, or a
                scenario cannot be read.
        """
        from corebound.workflow.hosts import HostResults, compare_recorded_hosts

        files = [Path(file) for file in scenario_files]
        comparison = compare_recorded_hosts(self._folder("hosts"), files, _warn)
        return HostResults(comparison=comparison)

    @checked
    def regressions(
        self,
        *,
        status: str | PathLike[str] = DECISIONS_FILE,
        site: str | PathLike[str] = "reports/site",
        confirm: bool = False,
        config: str | PathLike[str] = CONFIG,
        wait_s: float = 60.0,
        budget_s: float | None = None,
        notify: Callable[[str], object] | None = None,
    ) -> Regressions:
        """The lasting changes of all histories, as `corebound regressions` finds them.

        All series of the folder take part, whatever `filter` has selected: significance is
        corrected for them together.

        Args:
            status: The file of decisions.
            site: The folder or URL of the site, for links.
            confirm: Whether to measure suspected regressions again first.
            config: The asv.conf.json of the project under test, to confirm.
            wait_s: How long to wait for another run on this host, in seconds.
            budget_s: Time limit for `confirm`, in seconds; None is no limit.
            notify: Called with each line about the progress; `print` shows them.

        Raises:
            InputError: The results have no folder of records.
            ScenarioFaults: The file of decisions has errors.
        """
        from corebound.api.regressions import regressions_of
        from corebound.api.reporter import CallReporter

        folder, metric = self._folder("regressions"), self._selection.metric
        analysed = analyse_history(folder, Path(status), _warn, metric=metric)
        if confirm:
            analysed = confirm_open_changes(
                analysed,
                CallReporter(notify),
                config=Path(config),
                wait_s=wait_s,
                budget_s=budget_s,
            )
        return regressions_of(analysed, str(site), metric)

    @checked
    def decide(
        self,
        state: State,
        change: str,
        because: str | None = None,
        *,
        status: str | PathLike[str] = DECISIONS_FILE,
    ) -> tuple[str, ...]:
        """Record a decision about a change, as `corebound regressions --accept` and others do.

        Args:
            state: `accepted`, `fixed`, or `open`, which revokes a decision.
            change: The id of a change, or the start of a commit, for all changes of it.
            because: The reason; `accepted` needs one.
            status: The file of decisions.

        Returns:
            The ids of the changes.

        Raises:
            InputError: There is no such change, it is accepted without a reason, the file cannot
                be extended, or the results have no folder of records.
        """
        folder, metric = self._folder("decide"), self._selection.metric
        history = analyse_history(folder, Path(status), _warn, metric=metric)
        decided = record_decision(state, change, because, history, Path(status))
        return tuple(each.id for each in decided)

    def _folder(self, where: str) -> Path:
        if self._records is None:
            raise InputError(
                what="these results have no folder of records.",
                where=where,
                fix="`corebound.load` a folder of records.",
            )
        return self._records

    def _compare_recorded(self, before: str, after: str, project: str | None) -> Comparison:
        folder = self._folder("compare")
        metric = self._selection.metric
        return compared.of_recorded(
            compare_recorded(before, after, folder, _warn, project=project, metric=metric)
        )

    def series(self) -> tuple[Series, ...]:
        """The selected series with the selected points, as corebound keeps them."""
        if self._records is None:
            return ()
        suite = read_suite(self._records, metric=self._selection.metric)
        for fault in suite.faults:
            _warn(str(fault))
        selected = (series for series in suite.series if self._selection.has_series(series))
        points = ((series, self._selected_points(series)) for series in selected)
        return tuple(
            replace(series, points=series.points.select(indices))
            for series, indices in points
            if indices
        )

    def _selected_points(self, series: Series) -> list[int]:
        selection = self._selection
        return [
            index
            for index, moment in enumerate(series.points.moments)
            if selection.has_commit(moment.commit)
            and (selection.run is None or (moment.run or "").startswith(selection.run))
        ]

    @property
    def document(self) -> dict[str, Any]:
        """The only run as plain data, as `corebound run --json` and `show --json` print it.

        Raises:
            InputError: There are no runs, or several.
        """
        result = recorded_result(self._only_run("document"), _warn)
        return result.judged_by(self._selection.metric).document

    @checked
    def log(self, launch: str | None = None) -> LaunchLog:
        """The output of a launch of the only run, as `corebound log` prints it.

        Args:
            launch: The id of the launch; None is the last one that failed.

        Raises:
            InputError: There are no runs, or several, or no such launch.
        """
        return launch_log(self._only_run("log"), launch)

    def _only_run(self, where: str) -> Stored:
        runs = [*self._selected_runs()]
        if len(runs) != 1:
            raise InputError(
                what=f"these results have {len(runs)} runs.",
                where=where,
                fix="Select one: `results.filter(run=ID)`.",
            )
        return runs[0].read()

    def plot(self) -> Figure:
        """Draw each comparison with its interval, with matplotlib (the extra `plot`).

        Raises:
            HostError: matplotlib is not installed.
            InputError: There are no comparisons.
        """
        from corebound.api import plot

        return plot.comparisons_figure(tuple(self._scenario_results()))

    def __repr__(self) -> str:
        """The number of runs and the names of the scenarios."""
        runs = [stored.run for stored in self._selected_runs()]
        names = sorted(
            {
                str(source.document["name"])
                for run in runs
                for source in run.scenarios
                if self._selection.has_scenario(str(source.document["name"]))
            }
        )
        return f"<Results: {len(runs)} runs, scenarios {', '.join(names) or 'none'}>"

    def _repr_html_(self) -> str:
        from corebound.api import notebook

        return notebook.results_html(tuple(self.latest()))

    def latest(self) -> Iterator[ScenarioResult]:
        """The latest result of each selected scenario on each host, with all that pages show."""
        latest = {
            (result.run.host.id, result.scenario.name): result
            for result in self._scenario_results()
        }
        yield from latest.values()

    def _selected_runs(self) -> Iterator[RunReader]:
        """Oldest first."""
        return (stored for stored in self._runs if self._selection.has_run(stored.run))

    def _read(self) -> Iterator[Stored]:
        for run in self._selected_runs():
            stored = run.read()
            readable, faults = drop_unreadable_scenarios(stored)
            for fault in faults:
                _warn(str(fault))
            launches = (
                launch
                for launch in stored.launches
                if self._selection.has_commit(readable.commit_of(launch.cell.environment))
            )
            judged, kept = judged_by(self._selection.metric, readable, launches)
            yield Stored(file=stored.file, run=judged, launches=tuple(kept), faults=stored.faults)

    def _cells(self) -> Iterator[ExportedCell]:
        for stored in self._read():
            for cell in run_export.exported_cells(stored.run, stored.launches):
                if self._selection.has_scenario(cell.cell.scenario) and self._selection.has_axes(
                    dict(cell.cell.axes)
                ):
                    yield cell

    def _scenario_results(self) -> Iterator[ScenarioResult]:
        """The result of each selected scenario of each run, with the selected cells."""
        for stored in self._read():
            for source in stored.run.scenarios:
                if not self._selection.has_scenario(str(source.document["name"])):
                    continue
                result = analyse_scenario(stored.run, source, stored.launches)
                if result.cells:
                    yield self._selected_cells(result)

    def _selected_cells(self, result: ScenarioResult) -> ScenarioResult:
        """A result with the selected cells alone; a comparison needs its own cell only."""
        if not self._selection.axes:
            return result

        def keeps(axes: Iterable[tuple[str, str]]) -> bool:
            return self._selection.has_axes(dict(axes))

        return replace(
            result,
            by_key={key: cell for key, cell in result.by_key.items() if keeps(cell.cell.axes)},
            ranked=tuple(pair for pair in result.ranked if keeps(pair.cell.cell.axes)),
            profiles=tuple(launch for launch in result.profiles if keeps(launch.cell.axes)),
        )


def load(records: str | PathLike[str] = RECORDS) -> Results:
    """Load recorded results.

    Only the first line of each run's file is read now; launches are read by the tables.

    Args:
        records: A folder of records, such as `reports/records`, or the file of one run.

    Raises:
        InputError: There is no such folder, or it has neither a run nor an imported history.
    """
    path = Path(records)
    faults: list[Fault] = []
    if path.is_file():
        runs = [jsonl.StoredRun(path, jsonl.read_run(path))]
        folder = None
    else:
        runs = jsonl.runs(path, faults)
        folder = path
    for fault in faults:
        _warn(str(fault))
    if not path.exists():
        raise InputError(
            what="there is no such folder.",
            where=str(path),
            fix="Name a folder of records; `corebound run` writes reports/records.",
        )
    runs.sort(key=lambda entry: (entry[1].started_at, entry[1].id))
    return Results([_stored(file, run) for file, run in runs], records=folder)


def of_files(files: Sequence[Path]) -> Results:
    """The results of several runs, by their files; one without a launch has none."""
    return Results([_stored(file, jsonl.read_run(file)) for file in files if file.exists()])


def _stored(file: Path, run: Run) -> RunReader:
    return RunReader(run=run, read=lambda: jsonl.read(file))


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=3)


def _hash_of(commit: str) -> str:
    """The start of a hash as it is; the hash of any other name that git knows."""
    if "+" in commit or (
        len(commit) >= 4 and all(letter in "0123456789abcdef" for letter in commit)
    ):
        return commit
    return resolve_revision(commit) or commit


def _texts(values: Value | Sequence[Value]) -> frozenset[str]:
    listed = [values] if isinstance(values, str | int | float | bool) else values
    return frozenset(axis_text(value) for value in listed)


def _axes_texts(axes: Axes) -> dict[str, frozenset[str]]:
    return {axis: _texts(values) for axis, values in axes.items()}
