"""Progress of a command: a live panel or bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import re
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from corebound import units
from corebound.analysis.forecast import TimeLeft
from corebound.analysis.wording import count
from corebound.cli import crash
from corebound.cli.output.console import Console
from corebound.machine.doctor.result import HostCheck
from corebound.records.launch_record import Kind, Launch
from corebound.runner import Job
from corebound.scenario.cell import Cell

# Drawing uses CPU time that would disturb a measurement on a small host.
_REDRAW_INTERVAL_S = 1.0
# In a log, a line during a long launch shows that it has not hung.
_LOG_INTERVAL_S = 60.0
_TRACEBACK_LINES = 6
_WARNING_WIDTH = 80

_STATUS_SIGNS = {
    "ok": ("✓", "green"),
    "dropped": ("–", "dim"),
    "failed": ("✗", "red"),
    "timed-out": ("✗", "red"),
    "invalid": ("!", "yellow"),
    "skipped": ("–", "dim"),
}


class TerminalReporter:
    """Shows on a console what a command does; a `Reporter` of `workflow/execute`."""

    def __init__(self, console: Console, *, resume_command: str | None = None) -> None:
        """Print to a console; if a run is interrupted, name the command that resumes it."""
        self.console = console
        self._resume_command = resume_command

    def notify(self, message: str) -> None:
        """Print a line of untrusted text."""
        self.console.print_line(message)

    def show_warnings(self, checks: Sequence[HostCheck]) -> None:
        """Print the checks that are warnings, one line each."""
        lines = warning_lines(checks)
        for line in lines:
            self.notify(line)
        if lines:
            self.notify("Run `corebound doctor` to see why these matter and how to fix them.")

    def show_run(self, *, done: int, budget_s: float | None, time_left: TimeLeft) -> RunProgress:
        """Show the progress of a run."""
        return RunProgress(
            self.console,
            done=done,
            budget_s=budget_s,
            time_left=time_left,
            resume_command=self._resume_command,
        )


def warning_lines(checks: Sequence[HostCheck]) -> tuple[str, ...]:
    """The warnings, one line each."""
    lines = [
        Text(f"warning: {check.check}: {check.value}")
        for check in checks
        if check.state == "warning"
    ]
    for line in lines:
        line.truncate(_WARNING_WIDTH, overflow="ellipsis")
    return tuple(line.plain for line in lines)


class RunProgress:
    """Shows cell, launch and time left; an `Observer` of the runner."""

    def __init__(
        self,
        console: Console,
        *,
        done: int,
        budget_s: float | None,
        time_left: TimeLeft,
        resume_command: str | None = None,
    ) -> None:
        """Start with the launches that a resumed run has already done, and with the budget."""
        self._console = console
        self._started_s = self._drawn_s = time.monotonic()
        self._done = done
        self._left: Counter[str] = Counter()
        self._time_left_of = time_left
        self._budget_s = budget_s
        self._resume_command = resume_command
        self._current: tuple[Job, float] | None = None
        # A reason that many cells share is printed once; the records have it for every cell.
        self._printed_reasons: set[tuple[str, str]] = set()
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._live.stop()
        if crash.interruption(error) is not None:
            resume = f" To resume: `{self._resume_command}`." if self._resume_command else ""
            if not self._done:
                resume = " Nothing is recorded: no launch has ended."
            self._console.print_line(f"Stopped.{resume}")

    def started(self, job: Job, *, left: Mapping[str, int]) -> None:
        """Show the launch that starts."""
        self._current = (job, time.monotonic())
        scenario = job.planned.cell.scenario
        if job.iterations is not None and self._is_new("iterations", scenario):
            self._console.print_line(
                f"{scenario}: the launches so far now decide how many iterations each later one"
                f" has, at most; this one {job.iterations:,}."
            )
        # A starting launch counts as left for the runner, and as done when it ends.
        self._left = Counter(left)
        if not self._left.total():
            self._left[job.planned.cell.scenario] = 1
        self._draw()

    def ended(self, launch: Launch) -> None:
        """Print one line for the launch that ended."""
        self._current = None
        if launch.status != "skipped":
            self._done += 1
            scenario = launch.cell.scenario
            self._left[scenario] = max(self._left[scenario] - 1, 0)
        self._console.print(self._launch_line(launch), soft_wrap=True)
        if launch.status != "skipped":
            self._draw()

    def tick(self) -> None:
        """Redraw if the last drawing is old enough."""
        interval_s = _REDRAW_INTERVAL_S if self._console.is_terminal else _LOG_INTERVAL_S
        if time.monotonic() - self._drawn_s >= interval_s:
            self._draw()
            if not self._console.is_terminal:
                current = f"{self._current_launch().plain}; {self._position(self._done + 1)}"
                self._console.print(Text(f"… {current}", "dim"), soft_wrap=True)

    def _draw(self) -> None:
        self._drawn_s = time.monotonic()
        if self._console.is_terminal:
            self._live.update(self._panel(), refresh=True)

    def _panel(self) -> Group:
        total = self._total()
        row = Table.grid(padding=(0, 2))
        row.add_row(
            ProgressBar(total=max(total, 1), completed=self._done, width=30),
            Text(f"{count(self._done, 'launch', 'launches')} done, {total} at most"),
            Text(f"{clock(time.monotonic() - self._started_s)} elapsed"),
            Text(self._time_left()),
        )
        return Group(self._current_launch(), row, *self._earlier_end())

    def _total(self) -> int:
        """How many launches there are at most."""
        return self._done + self._left.total()

    def _earlier_end(self) -> Iterator[Text]:
        """What ends the run before all of its launches."""
        if self._current and self._current[0].planned.measure.launches.follow_spread:
            yield Text("ends earlier if every ratio is clear or precise enough before", "dim")

    def _current_launch(self) -> Text:
        if self._current is None:
            return Text("…")
        job, started_s = self._current
        elapsed = clock(time.monotonic() - started_s)
        return Text(
            f"{_cell_name(job.planned.cell)}  {_part(job.kind, job.block)}, {elapsed}",
            overflow="ellipsis",
            no_wrap=True,
        )

    def _time_left(self) -> str:
        launches_s = self._time_left_of.seconds(self._left)
        if self._budget_s is not None:
            budget_s = max(self._budget_s - (time.monotonic() - self._started_s), 0.0)
            if launches_s is None or budget_s < launches_s:
                return f"{clock(budget_s)} of the budget left"
        return "" if launches_s is None else f"{clock(launches_s)} left at most"

    def _launch_line(self, launch: Launch) -> Text:
        sign, style = _STATUS_SIGNS[launch.status]
        line = Text.assemble((sign, style), f" {_cell_name(launch.cell)}")
        if launch.status != "skipped":
            if step := _step_text(launch):
                line.append(f"  {step}")
            line.append(f"  {self._context(launch)}", "dim")
        elif launch.kind == "profile":
            line.append("  operators", "dim")
        for detail in self._details(launch):
            line.append(f"\n  {detail}", "dim")
        return line

    def _context(self, launch: Launch) -> str:
        """The block; in a log also how far the run is, which a terminal shows below."""
        parts = [_part(launch.kind, launch.block)]
        if not self._console.is_terminal:
            parts.append(self._position(self._done))
        return f"({'; '.join(parts)})"

    def _position(self, number: int) -> str:
        total = max(self._total(), number)
        return ", ".join(filter(None, (f"launch {number} of at most {total}", self._time_left())))

    def _details(self, launch: Launch) -> Iterator[str]:
        """Why a launch does not count, and what it left behind; the same thing only once."""
        if launch.reason is not None and self._is_new(launch.status, launch.reason):
            yield f"{launch.status}: {launch.reason}"
            if launch.status == "failed":
                yield from (f"| {line}" for line in traceback_lines(launch.log))
            if launch.fix:
                yield launch.fix
            if launch.log:
                yield f"Its whole output: `corebound log {launch.run} {launch.id}`"
        # A worker that failed may itself still be running.
        if launch.leftover_processes and launch.status in {"ok", "invalid"}:
            names = ", ".join(sorted(set(launch.leftover_processes)))
            if self._is_new("left", names):
                yield f"It left processes behind, which were ended: {names}."

    def _is_new(self, kind: str, text: str) -> bool:
        """Whether this was not printed yet; launches that differ only in numbers are alike."""
        key = kind, _NUMBER.sub("#", text)
        is_new = key not in self._printed_reasons
        self._printed_reasons.add(key)
        return is_new


_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def traceback_lines(log: str) -> list[str]:
    """The last lines of a launch's output, where the traceback of its error ends."""
    return [line for line in log.splitlines() if line.strip()][-_TRACEBACK_LINES:]


def _step_text(launch: Launch) -> str:
    """The median of an iteration, all workers together; empty if nothing was timed."""
    if metric := launch.cell.metric:
        values = [each[0][0] for worker in launch.workers for each in worker.metrics]
        return metric.text(metric.as_time_ns(statistics.median(values))) if values else ""
    times = [time_ns for worker in launch.workers for time_ns in worker.wall_ns]
    return units.duration(statistics.median(times)) if times else ""


def _cell_name(cell: Cell) -> str:
    return f"{cell.scenario}: {cell.label}"


def _part(kind: Kind, block: int) -> str:
    return f"block {block + 1}" if kind == "measure" else "operators"


def clock(seconds: float) -> str:
    """Format a duration like a clock: `1:05`, `2:00:05`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
