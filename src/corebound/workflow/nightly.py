"""A nightly run: update, measure, detect regressions, publish and summarise, in one request."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import replace

from corebound import clock, git
from corebound.errors import NO_ANSWER, REGRESSION, CoreboundError, InputError, LaunchError
from corebound.machine import discovery, identity
from corebound.records import jsonl
from corebound.records.jsonl import RECORDS
from corebound.scenario.metrics import JudgedBy
from corebound.scenario.models import ProfileName
from corebound.workflow import options
from corebound.workflow.anchor import configured_anchor
from corebound.workflow.execute import Budget
from corebound.workflow.nightly_steps import (
    Journal,
    Step,
    begin_journal,
    nightly_lock,
    run_steps,
    unfinished_journal,
)
from corebound.workflow.nightly_summary import (
    NightlySummary,
    merge_regressions,
    send_summary,
    write_summary,
)
from corebound.workflow.projects import CONFIG, DEFAULT_SCENARIOS, Notify
from corebound.workflow.publish import DEFAULT_SITE, require_branch

DEFAULT_PUBLIC_SITE = Path("reports/public")
# The folder of journals and logs.
NIGHTS = Path("reports/nights")
# How much of the budget is over when the run ends, and when its regressions are confirmed, for
# which there is always some time. The rest is for the pages.
_RUN_SHARE, _CONFIRMED_SHARE, _LEAST_CONFIRM_SHARE = 0.85, 0.95, 0.05
_MOST_AFTER_S = 60.0
_RUN_CODES = frozenset({0, LaunchError.exit_code, NO_ANSWER})


class NightlyRequest(Struct, frozen=True, kw_only=True):
    """The request for a nightly run; the fields are the options of `corebound nightly`."""

    files: options.Files = (DEFAULT_SCENARIOS,)
    profile: Annotated[ProfileName, options.Option("How thoroughly to measure.")] = "nightly"
    budget_s: Annotated[
        float,
        options.Option("End after this time: 90s, 10m, 2h.", parse=options.seconds, typed="4h"),
    ] = 14_400.0
    wait_s: options.Wait = 0.0
    update: Annotated[
        bool, options.Option("First fetch and fast-forward the project under test.")
    ] = False
    anchor: options.Anchor = ()
    metric: Annotated[
        JudgedBy, options.Option("`memory` also reports regressions of peak memory.")
    ] = "time"
    verify: Annotated[
        bool, options.Option("Also check what `corebound tune` recommended on this host.")
    ] = False
    to: options.To = None
    branch: options.Branch = None
    push: options.Push = None
    squash: options.Squash = False
    site_url: Annotated[str | None, options.Option("Public URL of the site, for links.")] = None
    summary: Annotated[Path | None, options.Option("Also write the summary to this file.")] = None
    webhook: Annotated[
        str | None,
        options.Option("POST the summary to this URL, as JSON.", envvar="COREBOUND_WEBHOOK"),
    ] = None
    fresh: Annotated[bool, options.Option("Do not resume an interrupted nightly run.")] = False
    nights: Annotated[Path, options.Option("Folder of journals and logs.")] = NIGHTS
    config: options.Config = CONFIG
    records: options.Records = RECORDS

    @property
    def identity(self) -> tuple[str, ...]:
        """The values that identify a nightly run; other values mean another nightly run."""
        return (
            *map(str, self.files), self.profile, f"{self.budget_s:g}", str(self.update),
            str(self.to), str(self.branch), str(self.push), str(self.config), str(self.records),
            *(("verify",) if self.verify else ()), *self.anchor,
            *(("memory",) if self.metric == "memory" else ()),
        )  # fmt: skip

    def check(self) -> None:
        """Reject, before the run starts, requests that would fail hours later.

        Raises:
            InputError: A file does not exist, or there are two places to publish to.
        """
        missing = next((file for file in self.files if not file.exists()), None)
        if missing is not None:
            raise InputError(
                what="no such file or folder.",
                where=str(missing),
                fix="Name scenario files, or a folder of them.",
            )
        if self.to is not None and self.branch is not None:
            raise InputError(
                what="--to and --branch exclude each other.",
                where="corebound nightly",
                fix="Pass one of them.",
            )
        require_branch(self.branch, self.push, squash=self.squash, where="corebound nightly")


def nightly_steps(request: NightlyRequest, journal: Journal, host: str) -> Iterator[Step]:
    """The steps of a nightly run; each has what those before it have left of the budget.

    Args:
        journal: When the nightly run began, and which steps have ended.
        host: This host's id.
    """
    files = tuple(map(str, request.files))
    records = ("--records", str(request.records))
    config = ("--config", str(request.config))
    wait = ("--wait", f"{request.wait_s:.0f}s") if request.wait_s else ()
    runs = _runs_since(request.records, host, journal.stamp)
    begin_s = time.monotonic()
    budget = Budget(request.budget_s - sum(map(_spent_s, runs)), begin_s)

    def left(share: float, *, least: float = 0.0, after_s: float = 0.0) -> tuple[str, str]:
        left_s = (budget.share(share).left_s or 0.0) - after_s
        return "--budget", f"{max(left_s, least * request.budget_s, 1.0):.0f}s"

    if request.update:
        yield Step(name="update", command=_corebound_command("update", *config), once=True)
    yield Step(
        name="environments",
        command=_corebound_command(
            "environment", "make", *(word for file in files for word in ("--for", file))
        ),
    )
    yield Step(name="doctor", command=_corebound_command("doctor", "--json"))
    # On a busy host, the steps that follow take as long as those that precede.
    after_s = min(time.monotonic() - begin_s, _MOST_AFTER_S)
    run = _corebound_command(
        "run", *files, "--profile", request.profile, *left(_RUN_SHARE, after_s=after_s),
        "--favour-doubtful", "--json", *config, *records, *wait,
        *(word for anchor in request.anchor for word in ("--anchor", anchor)),
        *(("--resume",) if runs else ()),
    )  # fmt: skip
    # The summary reports failed launches and an exhausted budget. The results so far are
    # published all the same.
    yield Step(name="run", command=run, accepted_codes=_RUN_CODES, once=True)
    if journal.codes.get("run") == NO_ANSWER and not any(jsonl.files(request.records)):
        return  # The first night had no time for a launch: there is nothing to show yet.
    links = ("--site", request.site_url or str(request.to or DEFAULT_SITE))
    # 5: some series could not be analysed; the summary names them.
    yield Step(
        name="regressions",
        command=_corebound_command(
            "regressions", "--confirm", *left(_CONFIRMED_SHARE, least=_LEAST_CONFIRM_SHARE),
            "--json", *config, *records, *wait, *links,
        ),
        accepted_codes=frozenset({0, REGRESSION, NO_ANSWER}),
    )  # fmt: skip
    if request.metric == "memory":
        yield Step(
            name="memory",
            command=_corebound_command(
                "regressions", "--metric", "memory", "--json", *config, *records, *links
            ),
            accepted_codes=frozenset({0, REGRESSION, NO_ANSWER}),
        )
    if request.verify:
        yield Step(
            name="verify",
            command=_corebound_command(
                "tune", *files, "--verify", "--json", *config, *records, *wait
            ),
            # 1: a recommendation no longer holds; 2: there is none to check; 5: inconclusive.
            accepted_codes=frozenset({0, REGRESSION, InputError.exit_code, NO_ANSWER}),
            once=True,
        )
    yield Step(
        name="report",
        command=_corebound_command("report", "--out", str(DEFAULT_SITE), *records),
    )
    yield Step(name="publish", command=_publish_command(request))


def _corebound_command(*arguments: str) -> tuple[str, ...]:
    """A command for this corebound; -P, because the current folder may contain any module."""
    return (sys.executable, "-P", "-m", "corebound", *arguments)


def _publish_command(request: NightlyRequest) -> tuple[str, ...]:
    arguments = ["publish", "--site", str(DEFAULT_SITE)]
    if request.to is not None:
        arguments += ["--to", str(request.to)]
    if request.branch is not None:
        arguments += ["--branch", request.branch]
    if request.push is not None:
        arguments += ["--push", request.push]
    if request.squash:
        arguments.append("--squash")
    return _corebound_command(*arguments)


def _runs_since(records: Path, host: str, stamp: str) -> list[Path]:
    """The record files of this host's runs since the nightly run began."""
    return [file for file in sorted((records / host).glob("*.jsonl")) if file.name >= stamp]


def _spent_s(file: Path) -> float:
    """The total duration of a run's launches in seconds."""
    try:
        launches = jsonl.read(file).launches
    except CoreboundError:
        return 0.0  # killed before its first line was complete
    return sum(launch.duration_ns for launch in launches) / 1e9


def run_nightly(request: NightlyRequest, notify: Notify) -> NightlySummary:
    """Run the steps of a nightly run that are not done yet, then write and send the summary.

    Args:
        notify: Called with progress messages and with the errors of delivering the summary.

    Raises:
        HostError: Another nightly run is active.
        InputError: The request is invalid, or a file cannot be written.
    """
    request.check()
    if request.to is None and request.branch is None:
        request = replace(request, to=DEFAULT_PUBLIC_SITE)
    if not request.anchor:
        request = replace(request, anchor=configured_anchor(request.config))
    host = identity.host(discovery.live_topology())
    with nightly_lock(request.nights) as lock:
        journal = _open_journal(request, notify)
        result = run_steps(
            nightly_steps(request, journal, host.id),
            journal,
            lock=lock,
            now=clock.timestamp,
            notify=notify,
        )
        run_output = _step_output(journal, "run") or {}
        verify_output = _step_output(journal, "verify") or {}
        verify_error = verify_output.get("error", {})
        summary = NightlySummary(
            started_at=journal.stamp,
            host=host.name,
            project=Path.cwd().name,
            result=result,
            regressions=merge_regressions(
                _step_output(journal, step) or {}
                for step in ("regressions", "memory")
                if step in result.codes
            ),
            recommendations=verify_output.get("recommendations", ()),
            not_verified=f"{verify_error['what']} {verify_error['fix']}" if verify_error else "",
            site=request.site_url,
            partial=run_output.get("ending") == "out of time",
            snapshot=run_output.get("snapshot"),
        )
        summary = replace(summary, delivery_code=_deliver(summary, request, notify))
        # A failed nightly run can be resumed once the cause is fixed.
        if result.failure is None:
            journal.over(result.exit_code, clock.timestamp())
    return summary


def _open_journal(request: NightlyRequest, notify: Notify) -> Journal:
    folder, now = request.nights, clock.utc_now()
    # An update moves the checkout, and is not repeated.
    head = None if request.update else git.query(Path.cwd(), "rev-parse", "HEAD")
    asked = (*request.identity, head or "")
    journal = None if request.fresh else unfinished_journal(folder, asked, now)
    if journal is None:
        return begin_journal(folder, asked, now)
    notify(f"Resuming the interrupted nightly run of {journal.stamp}.")
    return journal


def _step_output(journal: Journal, step: str) -> dict[str, Any] | None:
    """The JSON output of a step; None if it has none."""
    try:
        output = json.loads((journal.folder / f"{step}.out").read_bytes())
    except (OSError, ValueError):
        return None
    return output if isinstance(output, dict) else None


def _deliver(summary: NightlySummary, request: NightlyRequest, notify: Notify) -> int:
    """Write and send the summary; returns the exit code of a failure, or 0."""
    deliveries: list[Callable[[], None]] = []
    if request.summary is not None:
        deliveries.append(partial(write_summary, summary.text, request.summary))
    if request.webhook:
        deliveries.append(partial(send_summary, summary.document, request.webhook))
    code = 0
    for deliver in deliveries:
        try:
            deliver()
        except CoreboundError as error:
            notify(str(error))
            code = error.exit_code
    return code
