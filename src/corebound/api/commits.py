"""Measure commits from a script or a notebook: two of them interleaved, or a search among many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import ClassVar

from msgspec.structs import asdict

from corebound.api import comparison as compared
from corebound.api.arguments import Budget
from corebound.api.measure import Measurement
from corebound.api.reporter import CallReporter
from corebound.api.results import Results, of_files
from corebound.present.shown import Shown
from corebound.records.jsonl import RECORDS
from corebound.scenario.metrics import JudgedBy
from corebound.scenario.models import ProfileName
from corebound.workflow import compare_commits as workflow
from corebound.workflow.bisect import BisectRequest, BisectResult, bisect_commits
from corebound.workflow.options import request_of
from corebound.workflow.projects import CONFIG, DEFAULT_SCENARIOS


def compare_commits(
    base: str,
    head: str,
    *files: str | PathLike[str],
    profile: ProfileName | None = None,
    only: Sequence[str] = (),
    budget_s: Budget | None = None,
    metric: JudgedBy = "time",
    margin: float | None = None,
    resume: bool = False,
    config: str | PathLike[str] = CONFIG,
    records: str | PathLike[str] = RECORDS,
    unlocked: bool = False,
    wait_s: float = 60.0,
    notify: Callable[[str], object] | None = None,
) -> Measurement:
    """Build two commits, measure them interleaved, and judge, as `corebound compare-commits` does.

    Args:
        base: The commit to compare with; or a value of a key (`threads=1`), a file of
            `environments/`, or a package's version (`torch==2.12.0`).
        head: What to judge, of the same kind. `+` is the working tree.
        files: Scenario files, or folders of them; `scenarios` without any.
        profile: `quick` or `nightly`; None uses the scenarios' own numbers.
        only: The cells to select, such as `binding=none,threads=2`.
        budget_s: End after this many seconds; None is no limit.
        metric: What to judge: `time`, or `memory`, the peak RSS.
        margin: The largest share that counts as equal, 0.02 is 2 %; None uses the scenarios' own.
        resume: Whether to continue the same comparison if it was interrupted.
        config: The asv.conf.json of the project under test.
        records: The folder of records, where the run is kept.
        unlocked: Whether to measure even if another run is active.
        wait_s: How long to wait for another run on this host, in seconds.
        notify: Called with each line about the progress; `print` shows them.

    Returns:
        One row for each cell that has a result on both sides; `not_comparable` has the reasons for
        the others.

    Raises:
        ScenarioFaults: The files have errors, or do not support what is compared.
        CoreboundError: The two sides cannot be understood, or the host does not allow the run.
    """
    files = files or (DEFAULT_SCENARIOS,)
    request = request_of(workflow.CompareCommitsRequest, locals())
    outcome = workflow.compare_commits(request, CallReporter(notify))
    comparison = compared.of_recorded(outcome)
    return Measurement(**asdict(comparison), results=of_files([outcome.records]))


class Bisection(Shown, BisectResult, frozen=True, kw_only=True):
    """The result of a search among commits.

    Attributes:
        results: All launches of the search.
    """

    shown: ClassVar = (
        "scenario", "cell", "outcome", "suspects", "slowdown_ratio", "slowdown_interval",
    )  # fmt: skip

    results: Results


def bisect(
    good: str,
    bad: str,
    file: str | PathLike[str],
    *,
    cell: str | None = None,
    only: Sequence[str] = (),
    launches: int | None = None,
    budget_s: Budget | None = None,
    metric: JudgedBy = "time",
    fresh: bool = False,
    config: str | PathLike[str] = CONFIG,
    records: str | PathLike[str] = RECORDS,
    unlocked: bool = False,
    wait_s: float = 60.0,
    notify: Callable[[str], object] | None = None,
) -> Bisection:
    """Find the commit that changed a cell's time or memory, as `corebound bisect` does.

    Args:
        good: A commit before the change.
        bad: A commit after it.
        file: A scenario file.
        cell: The key of the cell, as reports show it, if the file has several.
        only: Axes that select it instead, such as `binding=none,threads=2`.
        launches: The most launches of each commit; None uses the scenario's.
        budget_s: End after this many seconds; None is no limit.
        metric: What to judge: `time`, or `memory`, the peak RSS.
        fresh: Whether to ignore launches of this search that are recorded already.
        config: The asv.conf.json of the project under test.
        records: The folder of records, where the runs are kept.
        unlocked: Whether to measure even if another run is active.
        wait_s: How long to wait for another run on this host, in seconds.
        notify: Called with each line about the progress; `print` shows them.

    Raises:
        InputError: One commit does not follow the other, or the file has several cells.
        CoreboundError: The environments or the host do not allow the runs.
    """
    found = bisect_commits(request_of(BisectRequest, locals(), scenario=file), CallReporter(notify))
    return Bisection(**asdict(found), results=of_files(found.records))
