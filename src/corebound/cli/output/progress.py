"""Progress of a run: a live panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from corebound import units
from corebound.cli.output.terminal import Console
from corebound.records.launch_record import Kind, Launch
from corebound.runner import Job
from corebound.scenario.cell import Cell

# Drawing uses CPU time that would disturb a measurement on a small host.
REDRAW_EVERY_S = 1.0

MARKS = {
    "ok": ("✓", "green"),
    "failed": ("✗", "red"),
    "timed-out": ("✗", "red"),
    "invalid": ("!", "yellow"),
    "skipped": ("–", "dim"),
}


class Progress:
    """Shows cell, launch and time left; an `Observer` of the runner."""

    def __init__(self, console: Console, *, done: int, budget_s: float | None) -> None:
        """Start with the launches that a resumed run has already done, and with the budget."""
        self._console = console
        self._began_s = self._drawn_s = time.monotonic()
        self._done = done
        self._left = 0
        self._spent_s: list[float] = []
        self._budget_s = budget_s
        self._now: tuple[Job, float] | None = None
        # A reason that many cells share is printed once; the records have it for every cell.
        self._told: set[tuple[str, str]] = set()
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._live.stop()

    def started(self, job: Job, *, left: int) -> None:
        """Show the launch that starts."""
        self._now = (job, time.monotonic())
        # A starting launch counts as left for the planner, and as done when it ends.
        self._left = max(left, 1)
        self._draw()

    def ended(self, launch: Launch) -> None:
        """Print one line for the launch that ended."""
        self._now = None
        self._console.print(self._line(launch))
        if launch.status == "skipped":
            return
        self._done += 1
        self._left = max(self._left - 1, 0)
        self._spent_s.append(launch.duration_ns / 1e9)
        self._draw()

    def tick(self) -> None:
        """Redraw if the last drawing is old enough."""
        if time.monotonic() - self._drawn_s >= REDRAW_EVERY_S:
            self._draw()

    def _draw(self) -> None:
        self._drawn_s = time.monotonic()
        if self._console.is_terminal:
            self._live.update(self._panel(), refresh=True)

    def _panel(self) -> Group:
        total = self._done + self._left
        row = Table.grid(padding=(0, 2))
        row.add_row(
            ProgressBar(total=max(total, 1), completed=self._done, width=30),
            Text(f"launch {min(self._done + 1, total)} of {total}"),
            Text(f"{clock(time.monotonic() - self._began_s)} gone"),
            Text(self._time_left()),
        )
        return Group(self._doing(), row)

    def _doing(self) -> Text:
        if self._now is None:
            return Text("…")
        job, since_s = self._now
        gone = clock(time.monotonic() - since_s)
        return Text(
            f"{_named(job.planned.cell)}  {_part(job.kind, job.block)}, {gone}",
            overflow="ellipsis",
            no_wrap=True,
        )

    def _time_left(self) -> str:
        if not self._spent_s:
            return ""
        left_s = self._left * sum(self._spent_s) / len(self._spent_s)
        if self._budget_s is not None:
            left_s = min(left_s, self._budget_s - (time.monotonic() - self._began_s))
        return f"about {clock(max(left_s, 0))} left"

    def _line(self, launch: Launch) -> Text:
        mark, style = MARKS[launch.status]
        line = Text.assemble((mark, style), f" {_named(launch.cell)}")
        if launch.status != "skipped":
            part = _part(launch.kind, launch.block)
            line.append(f"  {part}, {units.duration(launch.duration_ns)}", "dim")
        elif launch.kind == "profile":
            line.append("  operators", "dim")
        if launch.reason is not None and (launch.status, launch.reason) not in self._told:
            self._told.add((launch.status, launch.reason))
            line.append(f"\n  {launch.status}: {launch.reason}\n  {launch.fix or ''}", "dim")
        return line


def _named(cell: Cell) -> str:
    return f"{cell.scenario}: {cell.label}"


def _part(kind: Kind, block: int) -> str:
    return f"block {block + 1}" if kind == "measure" else "operators"


def clock(seconds: float) -> str:
    """Format a duration like a clock: `1:05`, `2:00:05`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
