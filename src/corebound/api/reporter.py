"""The progress of a function that launches, line by line, for whoever called it."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from corebound.analysis.forecast import TimeLeft
from corebound.machine.doctor.result import HostCheck
from corebound.records.launch_record import Launch
from corebound.runner import Job, Observer


class CallReporter:
    """Passes each line of the progress to a function; a `Reporter` and an `Observer`."""

    def __init__(self, notify: Callable[[str], object] | None) -> None:
        """Take the function; None shows nothing."""
        self._notify = notify or (lambda _line: None)

    def notify(self, message: str) -> None:
        """Pass a message on."""
        self._notify(message)

    def show_warnings(self, checks: Sequence[HostCheck]) -> None:
        """Pass the host checks that are warnings on."""
        for check in checks:
            if check.state == "warning":
                self._notify(f"warning: {check.check}: {check.value}")

    def show_run(
        self, *, done: int, budget_s: float | None, time_left: TimeLeft
    ) -> AbstractContextManager[Observer]:
        """Observe the run."""
        del done, budget_s, time_left
        return contextlib.nullcontext(self)

    def started(self, job: Job, *, left: Mapping[str, int]) -> None:
        """A launch starts."""

    def ended(self, launch: Launch) -> None:
        """Pass the launch and its status on."""
        reason = f": {launch.reason}" if launch.reason else ""
        self._notify(f"{launch.cell.label}, block {launch.block + 1}: {launch.status}{reason}")

    def tick(self) -> None:
        """Nothing to redraw."""
