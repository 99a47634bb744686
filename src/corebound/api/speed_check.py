"""Fails a test if a function is slower than another version of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from corebound.api.arguments import checked
from corebound.api.measure import Measurement, measurement_of
from corebound.api.reporter import CallReporter
from corebound.workflow import measure_functions


class SpeedCheck:
    """The fixture `corebound`."""

    def __init__(self, folder: Path, report: Callable[[str], None]) -> None:
        """Take a folder for checkouts, and what gets the line about each check."""
        self._folder = folder
        self._report = report
        self._checks = 0

    @functools.partial(checked, name="corebound.check")
    def check(
        self,
        function: Callable[[], object],
        *,
        baseline: str | Callable[[], object],
        margin: float = 0.02,
        budget_s: float = 60.0,
        setup: bool = False,
        launches: tuple[int, int] = (6, 30),
        settings: Mapping[str, Any] | None = None,
    ) -> Measurement:
        """Fail the test if the function is slower than the baseline by more than the margin.

        Both are measured in fresh processes that alternate. The check fails only if the whole 95 %
        interval of the slow-down is above 1 and the slow-down is larger than the margin: an
        inconclusive result passes, and the summary of the session shows it.

        Args:
            function: Called without arguments. For a revision it must be in a module of a git
                repository.
            baseline: A revision, such as `main`, whose function of the same name is the baseline;
                or another function.
            margin: The largest slow-down that passes: 0.02 is 2 %.
            budget_s: End after this many seconds.
            setup: Whether the functions prepare and return the step, as in `corebound.measure`.
            launches: The least and the most launches of each side.
            settings: Other keys of a scenario, such as `{"threads": 1}`.

        Returns:
            The comparison, for further checks.

        Raises:
            InputError: There is no such revision, or the function is not in it.
            LaunchError: One of both fails.
        """
        __tracebackhide__ = True
        self._checks += 1
        if isinstance(baseline, str):
            folder = self._folder / f"revision-{self._checks}"
            folder.mkdir()
            before = measure_functions.function_at(function, baseline, folder)
        else:
            before = measure_functions.describe_function(baseline)
        request = measure_functions.FunctionRequest(
            setup=setup,
            budget_s=budget_s,
            margin=margin,
            launches=launches,
            settings=settings or {},
            # Other workers of pytest-xdist may measure.
            wait_s=600.0,
        )
        result = measure_functions.measure_functions(
            [before, measure_functions.describe_function(function)], request, CallReporter(None)
        )
        measurement = measurement_of(result)
        row = measurement.row
        text = f"{measurement.before} → {measurement.after}: {row.summary}"
        self._report(text)
        slowdown = row.slowdown_ratio or 1.0
        if row.verdict == "slower" and slowdown > 1 + margin:
            pytest.fail(f"{text}; the margin is {margin:.1%}", pytrace=False)
        return measurement
