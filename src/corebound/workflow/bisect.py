"""`corebound bisect` without a terminal: find the commit that made a cell slower or faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec.structs import replace

from corebound.analysis.json_documents import attributes
from corebound.analysis.peak_memory import MEMORY_MARGIN
from corebound.analysis.wording import count, total_time
from corebound.asv_bridge.project import open_project
from corebound.errors import NO_ANSWER, InputError, LaunchError
from corebound.machine.doctor.result import HostCheck
from corebound.records.launch_record import Launch
from corebound.records.run_record import Commit
from corebound.scenario.cell import OfOneCell, cell_identity
from corebound.scenario.metrics import PEAK_MEMORY
from corebound.stats.bisection import (
    BisectionOutcome,
    LaunchRequest,
    LaunchResults,
    Outcome,
    OutOfTimeError,
    least_launches,
    search,
)
from corebound.stats.comparison import log_ratios
from corebound.stats.intervals import Ends, ratio_interval_pair
from corebound.stats.launch_summary import CellSummary, summarise
from corebound.text import one_line
from corebound.workflow.calibrate import noise_notes
from corebound.workflow.comparison_sides import load_comparable, repeat_for_commits, short_name
from corebound.workflow.execute import Budget, Reporter, execute_run, hold_host_for
from corebound.workflow.forecast import forecast_tasks
from corebound.workflow.host_checks import preflight
from corebound.workflow.options import Argument, Files, Metric, Option
from corebound.workflow.prepare import PreparedRun, RunRequest, prepare_comparison, with_launches
from corebound.workflow.scenarios import LoadedScenario


class BisectResult(OfOneCell, frozen=True, kw_only=True):
    """The result of a search among commits.

    Attributes:
        project: The name of the project under test.
        commits: The searched commits, the good end first.
        is_merge: Whether the commit that was found is a merge.
        noise: The noise floor of the cell's scenario, if it was calibrated, in a sentence.
        records: Files of records, in the order they were begun.
    """

    project: str
    commits: tuple[Commit, ...]
    ending: BisectionOutcome
    is_merge: bool
    noise: tuple[str, ...]
    records: tuple[Path, ...]

    @property
    def exit_code(self) -> int:
        """0 with a commit found, 4 if an end could not be measured, else 5."""
        if self.outcome in {"no difference", "inconclusive", "out of time"}:
            return NO_ANSWER
        return LaunchError.exit_code if self.outcome == "broken" else 0

    @property
    def document(self) -> dict[str, Any]:
        """The result as plain data, as `corebound bisect --json` prints it."""
        return {
            "project": self.project,
            **cell_identity(self.scenario, self.cell),
            **attributes(self, "outcome", "suspects", "good", "bad"),
            **attributes(self, "slowdown_ratio", "slowdown_interval", "is_merge"),
            "commits": len(self.commits) - 1,
            "tests": self.ending.tests,
            **attributes(self, "noise", "records"),
        }

    @property
    def outcome(self) -> Outcome:
        """How the search ended.

        `found`: `commit` made the change. `range`: one of `suspects` did. `no difference` between
        the ends, within the margin. `inconclusive`: a difference can be neither shown nor excluded.
        `broken`: an end could not be measured. `out of time`: the budget ended first; with
        suspects, the ends differ.
        """
        return self.ending.outcome

    @property
    def suspects(self) -> tuple[Commit, ...]:
        """The commits of which one made the change."""
        return tuple(self.commits[index] for index in self.ending.suspects)

    @property
    def commit(self) -> Commit | None:
        """The commit that made the change; None unless it was found."""
        return self.suspects[0] if self.outcome == "found" else None

    @property
    def good(self) -> Commit:
        """The last commit that was as fast as the good end, as far as the search came."""
        return self.commits[self.ending.good]

    @property
    def bad(self) -> Commit:
        """The first commit that was as slow as the bad end, as far as the search came."""
        return self.commits[self.ending.bad]

    @property
    def slowdown_ratio(self) -> float | None:
        """Time of an iteration at `bad` over that at `good`; None if unknown."""
        return self.ending.slowdown_ratio

    @property
    def slowdown_interval(self) -> Ends | None:
        """Its 95 % confidence interval, (low, high); None with too few launches."""
        return ratio_interval_pair(self.ending.interval)


class BisectRequest(RunRequest, frozen=True, kw_only=True):
    """The commits to search among, and one cell."""

    options: ClassVar = (
        "good", "bad", "scenario", "cell", "only", "launches", "budget_s", "metric", "fresh",
        "unlocked", "wait_s", "config", "records",
    )  # fmt: skip

    good: Annotated[str, Argument("Commit before the change.")]
    bad: Annotated[str, Argument("Commit after the change.")]
    files: Files = ()
    scenario: Annotated[Path, Option("Scenario file.")]
    cell: Annotated[str | None, Option("Key of the cell, as reports show it.")] = None
    launches: Annotated[
        int | None,
        Option("Maximum launches of each commit; default: the scenario's.", min=3, max=1000),
    ] = None
    metric: Metric = "time"
    fresh: Annotated[bool, Option("Ignore recorded launches of this search.")] = False


def bisect_commits(request: BisectRequest, reporter: Reporter) -> BisectResult:
    """Search the commits between two for the one that changed a cell's time or memory.

    Raises:
        InputError: One commit does not follow the other, or the request has several cells.
        CoreboundError: The environments or the host do not allow the runs.
    """
    cell = (request.cell,) if request.cell else ()
    request = replace(request, files=(request.scenario,), only=(*request.only, *cell))
    project = open_project(request.config, reporter.notify)
    ends = project.commit(request.good), project.commit(request.bad)
    between = project.between(*ends)
    if not between:
        raise InputError(
            what=f"`{request.bad}` does not descend from `{request.good}` along first parents.",
            where="corebound bisect",
            fix="Name a GOOD that `git log --first-parent BAD` lists.",
        )
    loaded = _single_cell(load_comparable(request, reporter.notify), request.files[0])
    with hold_host_for(request, reporter.notify) as budget:
        bisection = _Bisection(
            commits=(ends[0], *between),
            loaded=loaded,
            request=request,
            max_launches=request.launches or loaded.scenario.measure.launches.max,
            budget=budget,
            reporter=reporter,
        )
        ending = bisection.search()
    return BisectResult(
        project=project.name,
        measured=loaded.cells[0]
        if request.metric == "time"
        else replace(loaded.cells[0], metrics=(PEAK_MEMORY,)),
        commits=bisection.commits,
        ending=ending,
        is_merge=project.is_merge(bisection.commits[ending.bad]),
        noise=bisection.noise_notes(ending),
        records=tuple(dict.fromkeys(prepared.file for prepared in bisection.runs.values())),
    )


def _single_cell(loaded: tuple[LoadedScenario, ...], file: Path) -> LoadedScenario:
    cells = [cell for scenario in loaded for cell in scenario.cells]
    if len(loaded) == 1 and len(cells) == 1:
        return loaded[0]
    raise InputError(
        what=f"{len(cells)} cells match: {', '.join(cell.key for cell in cells[:8])}"
        + (", …" if len(cells) > 8 else "."),
        where=str(file),
        fix="Select one with --cell.",
    )


@dataclass(slots=True, kw_only=True)
class _Bisection:
    """Measures the commits that the search requests, reusing recorded launches if there are any.

    Attributes:
        commits: The searched commits, the good end first.
        runs: The run of each group of commits, by their positions.
        checks: The host checks of the first run; later runs store the same.
    """

    commits: tuple[Commit, ...]
    loaded: LoadedScenario
    request: BisectRequest
    max_launches: int
    budget: Budget
    reporter: Reporter
    runs: dict[tuple[int, ...], PreparedRun] = field(default_factory=dict)
    checks: tuple[HostCheck, ...] | None = None

    @property
    def min_launches(self) -> int:
        """The number of launches before the first analysis."""
        return min(self.loaded.scenario.measure.launches.min, self.max_launches)

    def search(self) -> BisectionOutcome:
        """Run the search to its end, or as far as the time allows."""
        searching = search(
            len(self.commits) - 1,
            least=self.min_launches,
            most=self.max_launches,
            margin=self.loaded.scenario.measure.margin
            if self.request.metric == "time"
            else MEMORY_MARGIN,
        )
        try:
            request = next(searching)
            while True:
                try:
                    answer = self._answer(request)
                except OutOfTimeError as error:
                    request = searching.throw(error)
                else:
                    request = searching.send(answer)
        except StopIteration as stop:
            ending: BisectionOutcome = stop.value
            return ending

    def noise_notes(self, ending: BisectionOutcome) -> tuple[str, ...]:
        """The noise floor of the cell's scenario, for the number of launches of the result."""
        ends = (ending.good, ending.bad)
        with_both = [run for indices, run in self.runs.items() if {*ends} <= {*indices}]
        # A noise floor is of times.
        if not with_both or self.request.metric != "time":
            return ()
        prepared = with_both[-1]
        succeeded = [
            launch for launch in prepared.done if launch.kind == "measure" and launch.status == "ok"
        ]
        names = [short_name(self.commits[index]) for index in ends]
        return noise_notes(
            self.request.records,
            prepared.run,
            [self.loaded.source],
            launches=min(sum(launch.cell.commit == name for launch in succeeded) for name in names),
        )

    def _answer(self, ask: LaunchRequest) -> LaunchResults:
        """Compare the requested commits.

        Raises:
            OutOfTimeError: the time ran out, with what was measured until then.
        """
        prepared = self.runs.get(ask.places) or self._prepare(ask)
        left_s = self.budget.left_s
        if left_s is not None and left_s <= 0:
            raise OutOfTimeError  # building the environments took all the time
        tasks = with_launches(prepared.tasks, ask.launches)
        result = execute_run(replace(prepared, tasks=tasks), self.budget, self.reporter)
        self.runs[ask.places] = replace(prepared, done=result.launches)
        is_out_of_time = result.ending == "out of time"
        judged = result.judged_by(self.request.metric).launches
        launched = {launch.cell.commit for launch in result.launches}
        if is_out_of_time and any(
            short_name(self.commits[index]) not in launched for index in ask.places
        ):
            raise OutOfTimeError
        summaries = {index: self._summary(index, judged, ask.launches) for index in ask.places}
        results = LaunchResults(
            log_ratios={
                (first, second): log_ratios(summaries[first], summaries[second])
                for first, second in pairwise(ask.places)
            },
            broken=frozenset(
                index for index, summary in summaries.items() if not summary.count("ok")
            ),
        )
        if is_out_of_time:
            raise OutOfTimeError(results)
        return results

    def _summary(self, index: int, launches: Sequence[Launch], blocks: int) -> CellSummary:
        """Summarise a commit's launches; blocks meant for a later analysis are left out."""
        name = short_name(self.commits[index])
        of_commit = [launch for launch in launches if launch.cell.commit == name]
        analysed = [launch for launch in of_commit if launch.block < blocks]
        warmup = self.loaded.scenario.measure.warmup
        return summarise(of_commit[0].cell, analysed, warmup, within_run=True)

    def _prepare(self, ask: LaunchRequest) -> PreparedRun:
        commits = [self.commits[index] for index in ask.places]
        names = ", ".join(f"{commit.sha[:8]} {one_line(commit.subject)}" for commit in commits)
        self.reporter.notify(f"Comparing {names}")
        loaded = repeat_for_commits(
            (self.loaded,),
            commits,
            self.request,
            launches=(self.min_launches, max(self.max_launches, self.min_launches)),
        )
        prepared = prepare_comparison(
            loaded,
            self.request,
            self.reporter.notify,
            resume=not self.request.fresh,
        )
        if self.checks is None:
            if (note := self._shortage_note(prepared)) is not None:
                self.reporter.notify(note)
            prepared = preflight(prepared, self.reporter)
            self.checks = prepared.run.preflight
        elif prepared.run.preflight is None:
            prepared = replace(prepared, run=replace(prepared.run, preflight=self.checks))
        return prepared

    def _shortage_note(self, prepared: PreparedRun) -> str | None:
        """What the search needs at least, if its budget probably holds less; else None."""
        forecasts = forecast_tasks(
            prepared.tasks, prepared.run.host.id, self.request.records, budget_s=None
        )
        last = len(self.commits) - 1
        launches = least_launches(last, self.min_launches) - len(prepared.done)
        least_s = sum(launches * forecast.launch_s for forecast in forecasts)
        if self.budget.whole_s is None or least_s <= self.budget.whole_s:
            return None
        return (
            f"The budget is probably too short: a search among {count(last, 'commit')} needs at"
            f" least {launches} launches, about {total_time(round(least_s * 1e9))}."
        )
