"""Fixtures: one site a session, one Chromium a file, windows that tests share."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from browser.pages import PAGES, Visit, Windows
from corebound.report import site
from corebound.report.inputs import SiteInputs
from support.commit_sample import a_commit_comparison
from support.fleet_sample import fleet_inputs
from support.report_sample import (
    COMMITS,
    NOW,
    a_sample,
    sample_calibrations,
    sample_history,
    sample_imports,
    sample_records,
    sample_steady_history,
)

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sites in a folder: of a first run, of nothing yet, of all, of a fleet, and of two commits.

    The first process that wants them makes them for all.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "sites"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _write_sites(folder)
    return folder


def _write_sites(folder: Path) -> None:
    site.write(SiteInputs(records=[a_sample()], now=NOW), folder)
    site.write(SiteInputs(records=[], now=NOW), folder / "empty")
    site.write(
        SiteInputs(
            records=sample_records(),
            now=NOW,
            profiles=sample_imports(),
            series=sample_history(),
            past=sample_steady_history(),
            calibrations=sample_calibrations(),
            compared=[COMMITS],
        ),
        folder / "past",
    )
    site.write(SiteInputs(now=NOW, **fleet_inputs()), folder / "fleet")
    site.write(SiteInputs(records=[a_commit_comparison()], now=NOW), folder / "commits")


# Of a file, for a test may start a browser of its own, and no two can be driven at a time.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(ARGUMENTS)
        )
        yield started
        started.close()


@pytest.fixture(scope="module", params=PAGES)
def name(request: pytest.FixtureRequest) -> str:
    """Every page in turn; all tests of a file about one come together."""
    return str(request.param)


@pytest.fixture(scope="module")
def windows(chromium: Browser) -> Windows:
    return Windows(chromium)


@pytest.fixture(scope="module")
def window(chromium: Browser) -> Visit:
    """The window in which every page is visited in turn."""
    return Visit(chromium)


@pytest.fixture(scope="module")
def visit(window: Visit, sites: Path, name: str) -> Visit:
    window.load(sites / name)
    return window
