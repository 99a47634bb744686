"""`corebound compare-commits`: measure two commits, versions or parameter values in alternation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from corebound.analysis.commit_comparison import CellAtCommits, judge_cells
from corebound.analysis.scenario_result import CellStudy, ScenarioResult
from corebound.asv_bridge.project import WORKING_TREE, open_project
from corebound.cli import noise_notes, options
from corebound.cli.commands import doctor
from corebound.cli.commands import run as commands_run
from corebound.cli.options import (
    Budget,
    Config,
    Json,
    MaybeFiles,
    Only,
    Profile,
    Records,
    Unlocked,
    Wait,
    take_host,
    typed,
)
from corebound.cli.output import compare_commits as output_compare_commits
from corebound.cli.output import run as output_run
from corebound.cli.output.compare_commits import CompareCommitsResult, Format
from corebound.cli.output.terminal import Console
from corebound.errors import NO_ANSWER, REGRESSION, InputError, LaunchError
from corebound.records.jsonl import RECORDS
from corebound.scenario.comparison import COMMITS_SUFFIX
from corebound.workflow import compare_commits as workflow_compare_commits
from corebound.workflow import comparison_sides, projects, scenarios
from corebound.workflow.comparison_sides import Sides
from corebound.workflow.prepare import RunRequest
from corebound.workflow.projects import Say
from corebound.workflow.scenarios import Loaded

SCENARIOS = Path("scenarios")


def compare_commits(
    base: Annotated[str, typer.Argument(help="The commit, setting or version to compare with.")],
    head: Annotated[str, typer.Argument(help="The one to judge.")],
    files: MaybeFiles = None,
    *,
    profile: Profile = None,
    only: Only = None,
    budget: Budget = None,
    margin: Annotated[
        float | None,
        typer.Option("--margin", help="What counts as no change, as a share: 0.02 is 2 %."),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to tell.")] = "text",
    as_json: Json = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the same comparison, if it was cut short.")
    ] = False,
    unlocked: Unlocked = False,
    wait: Wait = None,
    config: Config = projects.CONFIG,
    records: Records = RECORDS,
) -> None:
    """Build two commits, launch them in turns, judge.

    Says what became slower, and exits with 1 if anything did. Not commits alone: also two
    settings (threads=1 threads=2), two files of environments/, or two versions of a package
    (torch==2.12.0 torch==2.13.0).
    """
    if margin is not None and not 0 < margin < 1:
        raise InputError(
            what=f"`{margin:g}` is not a share.", where="--margin", fix="Write 0.02 for 2 %."
        )
    budget_s = None if budget is None else commands_run.seconds(budget)
    wait_s = 0.0 if wait is None else commands_run.seconds(wait, option="--wait")
    wanted = RunRequest(
        files=tuple(files or (SCENARIOS,)),
        profile=profile,
        only=tuple(only or ()),
        seed=None,
        config=config,
        records=records,
    )
    console = Console(stderr=True)
    say = options.teller(console)
    with ExitStack() as stack:
        ends, plain, loaded = _sides(base, head, wanted, say, margin=margin)
        take_host(stack, unlocked=unlocked, wait_s=wait_s)
        unmade = comparison_sides.made(loaded, say)
        ready = workflow_compare_commits.opened(
            loaded, wanted, records, say, go_on=resume, unmade=unmade
        )
        ready = doctor.preflight(ready, console)
        again = typed() if resume else f"{typed()} --resume"
        launches, ending = commands_run.execute_run(
            ready, budget_s, console, stack, operators=False, again=again
        )
    measured = output_run.RunResult(
        run=ready.run, file=ready.file, launches=launches, ending=ending, unfit=ready.unfit
    )
    told = _told(measured, ends, plain, records, own_margin=margin is None)
    typer.echo(output_compare_commits.told(told, "json" if as_json else form))
    raise typer.Exit(_exit_code(told, measured))


def _told(
    measured: output_run.RunResult,
    ends: Sides,
    plain: Sequence[Loaded],
    records: Path,
    *,
    own_margin: bool,
) -> CompareCommitsResult:
    """The verdicts, with the noise floor that applies to them."""
    judged = judge_cells(
        [pair for one in output_run.studies(measured) for pair in _pairs(one, ends)]
    )
    compared = [one.pair.comparison for one in judged if one.pair.comparison]
    noise = noise_notes.beside(
        records,
        measured.run,
        [one.source for one in plain],
        launches=min((one.pairs for one in compared), default=0),
        own_margin=own_margin,
    )
    return CompareCommitsResult(
        ends=ends, judged=judged, noise=noise, records=measured.file, ending=measured.ending
    )


def _sides(
    base: str, head: str, wanted: RunRequest, say: Say, *, margin: float | None
) -> tuple[Sides, tuple[Loaded, ...], tuple[Loaded, ...]]:
    """Resolve both sides; returns them, the plain scenarios, and the scenarios with both sides.

    Raises:
        InputError: The two arguments cannot be understood, or mean the same.
        ScenarioFaults: The files have errors, or do not support what is compared.
    """
    loaded = scenarios.load_all(wanted.files, wanted.only, wanted.profile)
    asked = comparison_sides.settings(base, head, loaded, say)
    if asked is not None:
        return asked.ends, loaded, comparison_sides.over(loaded, asked, wanted, margin=margin)
    project = open_project(wanted.config, say)
    one, other = (
        project.working_tree(say, outputs=(*projects.OUTPUTS, wanted.records))
        if word == WORKING_TREE
        else project.commit(word)
        for word in (base, head)
    )
    if (one.sha, one.tree) == (other.sha, other.tree):
        raise InputError(
            what=f"`{base}` and `{head}` are the same commit.",
            where="corebound compare-commits",
            fix="Name two; HEAD~1 is the one before the one that is checked out.",
        )
    chosen = workflow_compare_commits.of_project(loaded, wanted.files, say)
    ends = comparison_sides.of_commits(project.name, one, other)
    return ends, chosen, workflow_compare_commits.over(chosen, (one, other), wanted, margin=margin)


def _exit_code(told: CompareCommitsResult, measured: output_run.RunResult) -> int:
    """1 with a regression; 4 if a commit has no results, 5 if the time ran out; else 0."""
    if any(one.is_regression for one in told.judged):
        return REGRESSION
    if not any(one.pair.missing for one in told.judged):
        return 0
    is_for_time = told.ending == "out of time" and output_run.exit_code(measured) in {0, NO_ANSWER}
    return NO_ANSWER if is_for_time else LaunchError.exit_code


def _pairs(studied: ScenarioResult, ends: Sides) -> Iterator[CellAtCommits]:
    """Pair each cell of a scenario across both sides."""
    by_side: dict[tuple[str, str | None], CellStudy] = {
        (
            workflow_compare_commits.plain_key(one.cell, ends.axis),
            comparison_sides.side_of(one.cell, ends.axis),
        ): one
        for one in studied.cells
    }
    base, head = ends.names
    for key in dict.fromkeys(key for key, _ in by_side):
        both = tuple(by_side.get((key, side)) for side in (base, head))
        of_base, of_head = (one.summary.median_ns if one else None for one in both)
        yield CellAtCommits(
            scenario=studied.scenario.name.removesuffix(COMMITS_SUFFIX).removesuffix(
                comparison_sides.SUFFIX
            ),
            cell=key,
            base_ns=of_base,
            head_ns=of_head,
            comparison=both[1].comparison if both[1] else None,
            margin=studied.measure.margin,
            missing=tuple(
                f"{name}: {_why(one)}"
                for name, one in zip((base, head), both, strict=True)
                if one is None or not one.is_measured
            ),
            cpu_ratio=_cpu_ratio(*both),
        )


def _cpu_ratio(base: CellStudy | None, head: CellStudy | None) -> float | None:
    """CPU time of an iteration at head divided by that at base."""
    of_base, of_head = (one.summary.cpu_median_ns if one else None for one in (base, head))
    return of_head / of_base if of_base and of_head else None


def _why(studied: CellStudy | None) -> str:
    """The reason why a cell has no result."""
    if studied is None:
        return "not launched in the time there was"
    last = studied.launches[-1]
    return f"{last.status}: {last.reason}" if last.reason else last.status
