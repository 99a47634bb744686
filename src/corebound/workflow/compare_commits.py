"""`corebound compare-commits` without a terminal: measure two sides interleaved, and judge."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, ClassVar

from corebound.analysis.commit_comparison import CellAtCommits, InterleavedComparison, Sides
from corebound.analysis.compared import judge_together, row_values
from corebound.analysis.peak_memory import MEMORY_MARGIN, judged_by
from corebound.analysis.scenario_result import (
    CellResult,
    ScenarioResult,
    analyse_scenario,
    compare_cells,
)
from corebound.asv_bridge.project import WORKING_TREE, open_project
from corebound.errors import NO_ANSWER, REGRESSION, InputError, LaunchError
from corebound.records.jsonl import Stored
from corebound.records.run_record import Commit
from corebound.scenario.cell import PROJECT
from corebound.scenario.compared_axis import COMMITS_SUFFIX, SIDES_SUFFIX, key_without_axis
from corebound.scenario.metrics import JudgedBy
from corebound.workflow import comparison_sides as sides
from corebound.workflow import projects, scenarios
from corebound.workflow.calibrate import noise_notes
from corebound.workflow.execute import Reporter, RunResult, execute_run, hold_host_for
from corebound.workflow.forecast import announced
from corebound.workflow.host_checks import preflight
from corebound.workflow.options import Argument, Files, Option
from corebound.workflow.prepare import RunRequest, prepare_comparison
from corebound.workflow.projects import Notify
from corebound.workflow.scenarios import LoadedScenario


class CompareCommitsRequest(RunRequest, frozen=True, kw_only=True):
    """The two sides to measure interleaved, of the same kind, and the scenarios.

    A side is a commit, a parameter value, a requirements file, or a package's version.
    """

    options: ClassVar = (
        "base", "head", "files", "profile", "only", "budget_s", "metric", "margin", "resume",
        "unlocked", "wait_s", "config", "records",
    )  # fmt: skip

    base: Annotated[str, Argument("Commit, configuration or version to compare with.")]
    head: Annotated[str, Argument("Commit, configuration or version to judge.")]
    files: Files = (projects.DEFAULT_SCENARIOS,)
    margin: Annotated[float | None, Option("Largest ratio that counts as equal: 0.02 is 2 %.")] = (
        None
    )
    resume: Annotated[bool, Option("Continue the same comparison if it was interrupted.")] = False


def compare_commits(request: CompareCommitsRequest, reporter: Reporter) -> InterleavedComparison:
    """Measure both sides interleaved, and judge each cell.

    Raises:
        InputError: The two sides cannot be understood, or mean the same, or the margin is invalid.
        ScenarioFaults: The files have errors, or do not support what is compared.
        CoreboundError: The environments or the host do not allow the run.
    """
    margin = request.margin
    if margin is not None and not 0 < margin < 1:
        raise InputError(
            what=f"`{margin:g}` is not between 0 and 1.",
            where="--margin",
            fix="Write 0.02 for 2 %.",
        )
    both, originals, loaded = _resolve_sides(request, reporter.notify)
    with hold_host_for(request, reporter.notify) as budget:
        unmade = sides.make_environments(loaded, reporter.notify)
        prepared = prepare_comparison(
            loaded, request, reporter.notify, resume=request.resume, unmade=unmade
        )
        prepared = announced(prepared, request, reporter.notify)
        result = execute_run(preflight(prepared, reporter), budget, reporter)
    judged = result.judged_by(request.metric, margin=margin or MEMORY_MARGIN)
    cells = _judge(judged.scenario_results(), both)
    noise = noise_notes(
        request.records,
        result.run,
        [scenario.source for scenario in originals],
        launches=_fewest_pairs(cells) if request.metric == "time" else 0,
        own_margin=margin is None,
    )
    return InterleavedComparison(
        sides=both,
        cells=cells,
        noise=noise,
        records=result.file,
        ending=result.ending,
        exit_code=_exit_code(cells, result),
    )


def _resolve_sides(
    request: CompareCommitsRequest, notify: Notify
) -> tuple[Sides, tuple[LoadedScenario, ...], tuple[LoadedScenario, ...]]:
    """Resolve both sides; returns them, the plain scenarios, and the scenarios with both sides."""
    base, head, margin = request.base, request.head, request.margin
    loaded = scenarios.load_scenarios(request.files, request.only, request.profile)
    values = sides.parse_axis_values(base, head, loaded, notify)
    if values is not None:
        repeated = sides.repeat_for_values(loaded, values, request, margin=margin)
        return values.sides, loaded, repeated
    project = open_project(request.config, notify)
    first, second = (
        project.working_tree(notify, outputs=(*projects.OUTPUTS, request.records))
        if argument == WORKING_TREE
        else project.commit(argument)
        for argument in (base, head)
    )
    if (first.sha, first.tree) == (second.sha, second.tree):
        raise InputError(
            what=f"`{base}` and `{head}` are the same commit.",
            where="corebound compare-commits",
            fix="Name two different commits; HEAD~1 is the parent of the checked-out one.",
        )
    comparable = sides.select_comparable(loaded, request.files, notify)
    repeated = sides.repeat_for_commits(comparable, (first, second), request, margin=margin)
    return sides.sides_of_commits(project.name, first, second), comparable, repeated


def recorded_comparison(
    stored: Stored, base: Commit, head: Commit, metric: JudgedBy = "time"
) -> InterleavedComparison:
    """The comparison of two commits that a run measured interleaved, from its records.

    Args:
        stored: A run of `compare-commits` or `bisect`.
        base: The commit to compare with, one of the run's.
        head: The commit to judge, another of the run's.
    """
    both = sides.sides_of_commits(PROJECT, base, head)
    run, launches = judged_by(metric, stored.run, stored.launches)
    results = (analyse_scenario(run, source, launches) for source in run.scenarios)
    return InterleavedComparison(
        sides=both,
        cells=_judge(results, both),
        noise=(),
        records=stored.file,
        ending="complete",
    )


def _judge(results: Iterable[ScenarioResult], both: Sides) -> tuple[CellAtCommits, ...]:
    return tuple(judge_together([cell for result in results for cell in _cells(result, both)]))


def _fewest_pairs(cells: Iterable[CellAtCommits]) -> int:
    return min((cell.pairs for cell in cells if cell.comparison), default=0)


def _exit_code(cells: Sequence[CellAtCommits], result: RunResult) -> int:
    """See `InterleavedComparison.exit_code`."""
    if any(cell.is_regression for cell in cells):
        return REGRESSION
    if not any(cell.missing for cell in cells) and (cells or result.ending == "complete"):
        return 0
    ran_out = result.ending == "out of time" and result.exit_code in {0, NO_ANSWER}
    return NO_ANSWER if ran_out else LaunchError.exit_code


def _cells(result: ScenarioResult, both: Sides) -> Iterator[CellAtCommits]:
    """Pair each cell of a scenario across both sides."""
    by_side: dict[tuple[str, str | None], CellResult] = {
        (key_without_axis(cell.cell, both.axis), sides.side_of(cell.cell, both.axis)): cell
        for cell in result.cells
    }
    for key in dict.fromkeys(key for key, _ in by_side):
        base, head = (by_side.get((key, name)) for name in both.names)
        yield CellAtCommits(
            scenario=result.scenario.name.removesuffix(COMMITS_SUFFIX).removesuffix(SIDES_SUFFIX),
            cell=key,
            **row_values(base.summary if base else None, head.summary if head else None),
            comparison=compare_cells(result, head.cell, base.cell) if head and base else None,
            margin=result.measure.margin,
            missing=tuple(
                f"{name}: {_missing_reason(cell)}"
                for name, cell in zip(both.names, (base, head), strict=True)
                if cell is None or not cell.is_measured
            ),
            cpu_ratio=_cpu_ratio(base, head),
        )


def _cpu_ratio(base: CellResult | None, head: CellResult | None) -> float | None:
    """CPU time of an iteration at head divided by that at base."""
    base_ns, head_ns = (cell.summary.cpu_median_ns if cell else None for cell in (base, head))
    return head_ns / base_ns if base_ns and head_ns else None


def _missing_reason(cell: CellResult | None) -> str:
    """The reason why a cell has no result."""
    if cell is None:
        return "not launched in the available time"
    last = cell.launches[-1]
    return ": ".join(filter(None, (last.status, cell.bound, last.reason)))
