"""Execute a prepared run: hold the host, launch, and record each launch as it ends."""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from corebound import clock
from corebound.analysis.forecast import Forecast, TimeLeft
from corebound.analysis.json_documents import cell_document, findings_document, unconfirmed_document
from corebound.analysis.noise_floor import calibration_for, noise_at
from corebound.analysis.peak_memory import MEMORY_MARGIN, judged_by
from corebound.analysis.scenario_result import (
    CellResult,
    ScenarioResult,
    analyse_scenario,
    decide_together,
    findings,
)
from corebound.analysis.time_spent import time_spent
from corebound.analysis.unconfirmed import unconfirmed
from corebound.errors import NO_ANSWER, HostError, LaunchError
from corebound.launch import scratch
from corebound.machine.doctor.result import HostCheck
from corebound.machine.lock import host_lock, is_held
from corebound.planning.models import CannotRun
from corebound.records import documents, jsonl, traces
from corebound.records.calibration import Calibration, Noise
from corebound.records.launch_record import Kind, Launch
from corebound.records.run_record import Run
from corebound.runner import Clock, Ending, Observer, Runner, launcher
from corebound.scenario.metrics import JudgedBy
from corebound.stats.interference import is_refused
from corebound.workflow.forecast import time_left_of
from corebound.workflow.prepare import PreparedRun, RunRequest

# Enough for one launch, with room for several interleaved ones.
_MIN_OPEN_FILES = 64
# The part of a budget that is kept for the analysis after the last launch. Analysis takes about as
# long as planning; at most this share of the budget, and so many seconds, are kept.
_AFTER_SHARE, _AFTER_S = 0.1, 2.0


class Reporter(Protocol):
    """Shows the user what a command does; `cli/output/progress` has the terminal's."""

    def notify(self, message: str) -> None:
        """Show a message."""

    def show_warnings(self, checks: Sequence[HostCheck]) -> None:
        """Show the host checks that are warnings."""

    def show_run(
        self, *, done: int, budget_s: float | None, time_left: TimeLeft
    ) -> AbstractContextManager[Observer]:
        """Show the progress of a run.

        Args:
            budget_s: The time limit in seconds; None is no limit.
            time_left: How long the rest takes; the observer adds the launches that end.
        """


class Budget(Struct, frozen=True):
    """The time of a command, from its planning to its answer.

    Attributes:
        whole_s: The time in seconds; None is no limit.
        since_s: When it began, by the monotonic clock; later if the command waited for another run.
    """

    whole_s: float | None
    since_s: float

    @property
    def left_s(self) -> float | None:
        """What is left of it, in seconds, which is below 0 after its end; None without a limit."""
        return self.whole_s and self.since_s + self.whole_s - time.monotonic()

    @property
    def for_launches_s(self) -> float | None:
        """What is left of it for launches, in seconds; None without a limit."""
        if self.whole_s is None:
            return None
        elapsed_s = time.monotonic() - self.since_s
        return self.whole_s - elapsed_s - min(elapsed_s, _AFTER_S, _AFTER_SHARE * self.whole_s)

    def share(self, share: float) -> Budget:
        """One that began with this one and has a share of its time."""
        return Budget(self.whole_s and share * self.whole_s, self.since_s)


NO_LIMIT = Budget(None, 0.0)


class RunResult(Struct, frozen=True, kw_only=True):
    """A finished or interrupted run.

    Attributes:
        file: Its file of records.
        launches: All its launches, including those of earlier sessions.
        ending: Why it ended.
        not_launched: The reasons why cells could not be launched.
        forecasts: What it was expected to measure, if that was forecast.
    """

    run: Run
    file: Path
    launches: tuple[Launch, ...]
    ending: Ending
    not_launched: tuple[CannotRun, ...] = ()
    forecasts: tuple[Forecast, ...] = ()

    @property
    def is_kept(self) -> bool:
        """Whether its file exists: not if it ended before the first launch."""
        return self.file.exists()

    @property
    def exit_code(self) -> int:
        """The exit code; launches refused because of a disturbance do not count.

        4 if a launch failed, timed out or was discarded, or an environment could not be built; else
        3 if the host can hold no cell or an environment does not exist; else 5 if no launch is
        valid, or if the time ran out before a cell was compared with success, or before every
        scenario was measured that the forecast said would be; else 0.
        """
        statuses = {launch.status for launch in self.launches if not is_refused(launch)}
        causes = {reason.cause for reason in self.not_launched}
        if statuses & {"failed", "timed-out", "invalid"} or "build" in causes:
            return LaunchError.exit_code
        every_status = {launch.status for launch in self.launches}
        holds_none = every_status == {"skipped"} and self.ending == "complete"
        if holds_none or "environment" in causes:
            return HostError.exit_code
        has_no_value = bool(every_status) and "ok" not in every_status
        is_too_short = self.ending == "out of time" and not self._has_answer()
        return NO_ANSWER if has_no_value or is_too_short else 0

    def _has_answer(self) -> bool:
        """Whether all forecast scenarios have a result, and something is decided."""
        measured = {launch.cell.scenario for launch in self.launches if launch.status == "ok"}
        promised = {forecast.scenario for forecast in self.forecasts if forecast.launches}
        compared = [
            cell
            for result in self.scenario_results()
            for cell in result.cells
            if cell.baseline is not None
        ]
        is_decided = not compared or any(
            cell.least_slowdown_ratio
            or (cell.comparison and cell.comparison.verdict != "inconclusive")
            for cell in compared
        )
        return bool(measured) and promised <= measured and is_decided

    def scenario_results(self) -> tuple[ScenarioResult, ...]:
        """The result of each scenario of the run."""
        return decide_together(
            [analyse_scenario(self.run, source, self.launches) for source in self.run.scenarios]
        )

    def judged_by(self, metric: JudgedBy, *, margin: float = MEMORY_MARGIN) -> RunResult:
        """The same, judged by another metric; `margin` is the least change of memory."""
        run, launches = judged_by(metric, self.run, self.launches, margin=margin)
        return replace(self, run=run, launches=tuple(launches))

    @property
    def environments(self) -> set[str]:
        """The names of the environments that launches ran in."""
        return {launch.cell.environment for launch in self.launches}

    def launches_by_status(self, kind: Kind) -> dict[str, int]:
        """The number of launches of a kind by status."""
        return dict(Counter(launch.status for launch in self.launches if launch.kind == kind))

    def calibrations(self) -> tuple[Calibration, ...]:
        """Read the calibrations in the records that hold the run."""
        return documents.CALIBRATIONS.read(self.file.parent.parent)[0]

    @property
    def document(self) -> dict[str, Any]:
        """Everything that `corebound run` prints of the result, as plain data."""
        calibrations = self.calibrations()
        results = self.scenario_results()
        snapshot = self.run.snapshot_in(self.environments)
        return {
            "run": self.run.id,
            "records": str(self.file) if self.is_kept else None,
            "ending": self.ending,
            "commit": to_builtins(self.run.commit),
            "snapshot": snapshot.name if snapshot is not None else None,
            "launches": self.launches_by_status("measure"),
            "profiles": self.launches_by_status("profile"),
            "time": {
                scenario: {f"{part}_ns": spent_ns for part, spent_ns in spent.items()}
                for scenario, spent in time_spent(self.launches, results).items()
            },
            "cells": [
                cell_document(
                    cell,
                    self.run.host,
                    is_finding=cell.cell.id in result.decided,
                    noise=_noise(cell, calibration_for(calibrations, result.run, result.source)),
                )
                for result in results
                for cell in result.cells
            ],
            "unconfirmed": [
                unconfirmed_document(seen)
                for result in results
                if (seen := unconfirmed(result)) is not None
            ],
            "findings": [
                {"scenario": result.scenario.name, **finding}
                for result in results
                for finding in findings_document(findings(result))
            ],
        }


def _noise(cell: CellResult, calibration: Calibration | None) -> Noise | None:
    if calibration is None or cell.comparison is None:
        return None
    return noise_at(calibration, len(cell.summary.launches))


@contextmanager
def hold_host(
    notify: Callable[[str], None],
    *,
    unlocked: bool = False,
    wait_s: float = 0.0,
    validate: Callable[[], object] = lambda: None,
) -> Iterator[float]:
    """Hold the host's lock; yields how long it took to get it, in seconds.

    Args:
        notify: Called once if another run holds the lock.
        unlocked: Whether to measure beside other runs, without the lock.
        wait_s: How long to wait for another run to end, in seconds.
        validate: Called if another run holds the lock: what is wrong with the user's input comes
            before that.

    Raises:
        HostError: Another run holds the lock, or this process may not open enough files.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= limit < _MIN_OPEN_FILES:  # unlimited is -1
        raise HostError(
            what=f"this process may open only {limit} files, and measuring needs up to"
            f" {_MIN_OPEN_FILES}.",
            where="corebound",
            fix="Raise the limit: `ulimit -n 1024`.",
        )
    if unlocked:
        yield 0.0
        return
    if is_held():
        validate()
    waits_since_s = time.monotonic()
    with host_lock(
        wait_s=wait_s, waiting=lambda holder: notify(f"Waiting for the run of {holder}")
    ):
        yield time.monotonic() - waits_since_s


@contextmanager
def hold_host_for(
    request: RunRequest,
    notify: Callable[[str], None],
    validate: Callable[[], object] = lambda: None,
) -> Iterator[Budget]:
    """Hold the host's lock as `hold_host` does; yields the budget, which the wait is no part of."""
    with hold_host(
        notify, unlocked=request.unlocked, wait_s=request.wait_s, validate=validate
    ) as waited_s:
        yield Budget(request.budget_s, request.begin_s + waited_s)


def execute_run(
    prepared: PreparedRun,
    budget: Budget,
    reporter: Reporter,
    *,
    operators: bool = False,
    focuses: bool = False,
    follow: Callable[[Observer], Observer] = lambda observer: observer,
) -> RunResult:
    """Execute a run; each launch is on disk as soon as it ends, whatever happens later.

    Args:
        operators: Whether to profile operators in scenarios that request it.
        focuses: Whether a budget that cannot decide all comparisons decides some of them.
        follow: Makes what observes the run of the observer that shows its progress.

    Raises:
        HostError: Another run is writing to the same records.
    """
    with ExitStack() as stack:
        if prepared.file.exists():
            appender = jsonl.Appender(prepared.file)
            stack.callback(appender.close)
            # Another run may have written to the file before this process locked it.
            done = jsonl.read(prepared.file).launches
        else:
            appender = jsonl.begin(replace(prepared.run, budget_s=budget.whole_s), prepared.file)
            stack.callback(appender.close)
            done = ()
        launches = list(done)

        def append(launch: Launch) -> None:
            appender.append(launch)
            launches.append(launch)

        folder = stack.enter_context(scratch.scratch_folder())
        time_left = time_left_of(prepared.tasks, prepared.forecasts, launches)
        left_s = budget.for_launches_s
        progress = reporter.show_run(done=len(launches), budget_s=left_s, time_left=time_left)
        observer = follow(stack.enter_context(progress))
        ending = Runner(
            prepared.run,
            prepared.tasks,
            done=done,
            append=append,
            launch=launcher(
                stack,
                folder,
                traces.folder_of(prepared.file),
                observer.tick,
                gpus=len(prepared.run.host.gpus or ()),
            ),
            observer=observer,
            clock=Clock(monotonic_s=time.monotonic, now=clock.timestamp),
            time_left=time_left,
            budget_s=left_s,
            operators=operators,
            focuses=focuses,
        ).run()
        if ending == "complete":
            # Also without a launch: why the host can hold no cell.
            appender.publish()
    return RunResult(
        run=prepared.run,
        file=prepared.file,
        launches=tuple(launches),
        ending=ending,
        not_launched=prepared.not_launched,
        forecasts=prepared.forecasts,
    )
