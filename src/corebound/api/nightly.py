"""Carry out a nightly run from a script, such as the task of a scheduler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

from msgspec.structs import asdict

from corebound.api.arguments import Budget
from corebound.api.reporter import CallReporter
from corebound.api.results import Results, load
from corebound.present.shown import Shown
from corebound.records.jsonl import RECORDS
from corebound.scenario.metrics import JudgedBy
from corebound.scenario.models import ProfileName
from corebound.workflow.nightly import NIGHTS, NightlyRequest, run_nightly
from corebound.workflow.nightly_summary import NightlySummary
from corebound.workflow.options import request_of
from corebound.workflow.projects import CONFIG, DEFAULT_SCENARIOS


class NightlyRun(Shown, NightlySummary, frozen=True, kw_only=True):
    """The result of a nightly run.

    Attributes:
        started_at: When it began, as in the names of its records.
        results: All records, of earlier runs too; `results.regressions()` analyses them.
    """

    results: Results

    def heading(self) -> str:
        """The summary."""
        return self.text


def nightly(
    *files: str | PathLike[str],
    profile: ProfileName = "nightly",
    budget_s: Budget = 14_400.0,
    update: bool = False,
    anchor: Sequence[str] = (),
    metric: JudgedBy = "time",
    verify: bool = False,
    to: str | PathLike[str] | None = None,
    branch: str | None = None,
    push: str | None = None,
    squash: bool = False,
    site_url: str | None = None,
    summary: str | PathLike[str] | None = None,
    webhook: str | None = None,
    fresh: bool = False,
    nights: str | PathLike[str] = NIGHTS,
    config: str | PathLike[str] = CONFIG,
    records: str | PathLike[str] = RECORDS,
    wait_s: float = 60.0,
    notify: Callable[[str], object] | None = None,
) -> NightlyRun:
    """Measure, report regressions and publish the site, as `corebound nightly` does.

    An interrupted nightly run resumes. Each step is a process of its own, in the current folder.

    Args:
        files: Scenario files, or folders of them; `scenarios` without any.
        profile: `quick` or `nightly`.
        budget_s: End after this many seconds.
        update: Whether to fetch and fast-forward the project under test first.
        anchor: The pinned commit to alternate with, for a history on changing machines; by
            default the `anchor` of asv.conf.json. While it moves: the new one and the old one.
        metric: `memory` also reports regressions of peak memory.
        verify: Whether to check the recommendations of `corebound tune` too.
        to: The folder to publish to; `reports/public` if there is neither this nor a branch.
        branch: The branch to publish to instead.
        push: The remote to push that branch to.
        squash: Whether the branch keeps one commit only.
        site_url: The public URL of the site, for links.
        summary: A file to write the summary to, too.
        webhook: A URL to which the summary is sent as JSON.
        fresh: Whether to start a new nightly run even if one was interrupted.
        nights: The folder of journals and logs.
        config: The asv.conf.json of the project under test.
        records: The folder of records, where the run is kept.
        wait_s: How long to wait for another run on this host, in seconds.
        notify: Called with each line about the progress; `print` shows them.

    Raises:
        HostError: Another nightly run is active.
        InputError: The request is invalid, or a file cannot be written.
    """
    files = files or (DEFAULT_SCENARIOS,)
    night = run_nightly(request_of(NightlyRequest, locals()), CallReporter(notify).notify)
    # An early failure leaves no records.
    results = load(records) if Path(records).exists() else Results([])
    return NightlyRun(**asdict(night), results=results)
