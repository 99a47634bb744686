"""The pytest plugin: a fixture that compares a function with another version of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from corebound.api.speed_check import SpeedCheck


@pytest.fixture
def corebound(request: pytest.FixtureRequest, tmp_path: Path) -> SpeedCheck:
    """Compare functions in fresh processes: `corebound.check(f, baseline="main")`."""

    def report(line: str) -> None:
        # Properties reach the summary from the workers of pytest-xdist, too.
        request.node.user_properties.append(("corebound", line))

    # pytest loads this module in every session, and few of them use the fixture.
    from corebound.api.speed_check import SpeedCheck

    return SpeedCheck(tmp_path, report)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the result of every check, also of those that passed."""
    lines = [
        f"{report.nodeid}: {value}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, value in report.user_properties
        if name == "corebound"
    ]
    if lines:
        terminalreporter.section("corebound")
        for line in lines:
            terminalreporter.line(str(line))
