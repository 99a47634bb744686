"""The pages, byte for byte. COREBOUND_GOLDEN=write rewrites them; the diff is reviewed."""

from __future__ import annotations

import os

import pytest

from support.commit_sample import a_commit_comparison
from support.fleet_sample import fleet_inputs
from support.paths import GOLDEN
from support.report_sample import (
    COMMITS_PAGE,
    a_sample,
    a_sample_of_two_modes,
    a_serving_sample,
    pages_of,
    sample_imports,
    site_over_time,
)
from support.tuning import TUNE_PAGE, a_tuning


@pytest.mark.parametrize(
    ("name", "golden"),
    [
        ("index.html", "overview.html"),
        ("operators.html", "operators.html"),
        ("claims.html", "claims.html"),
        ("scenario/resnet50-inference.html", "scenario.html"),
        ("scenario/torchserve.html", "serving.html"),
    ],
)
def test_a_page_is_as_it_was_reviewed(of_a_run: dict[str, str], name: str, golden: str) -> None:
    _compare(of_a_run[name], golden)


@pytest.fixture(scope="module")
def of_a_run() -> dict[str, str]:
    return pages_of([a_sample(), a_serving_sample()], profiles=sample_imports())


@pytest.mark.parametrize(
    ("name", "golden"),
    [
        ("index.html", "overview-with-history.html"),
        ("history.html", "history.html"),
        ("history/io.Read.time_read-b69fd9f5.html", "benchmark.html"),
        ("run/r1.html", "run.html"),
        ("host/bench-01-0123456789ab.html", "host.html"),
        ("compare/r0-r1.html", "compare.html"),
        (COMMITS_PAGE, "commits.html"),
        ("feed.xml", "feed.xml"),
    ],
)
def test_a_page_over_time_is_as_it_was_reviewed(name: str, golden: str) -> None:
    _compare(site_over_time()[name], golden)


def test_the_history_on_a_scenario_page_is_as_it_was_reviewed() -> None:
    page = site_over_time()["scenario/resnet50-inference.html"]
    begin = page.index('<section id="history">')

    _compare(page[begin : page.index("</section>", begin)], "scenario-history.html")


def test_the_page_of_a_race_is_as_it_was_reviewed() -> None:
    text = pages_of([], tunings=[a_tuning()])[TUNE_PAGE]

    _compare(text, "tune.html")


def test_launches_of_two_modes_are_shown_as_it_was_reviewed() -> None:
    _compare(pages_of([a_sample_of_two_modes()])["scenario/pool.html"], "scenario-modes.html")


@pytest.mark.parametrize(
    ("name", "golden"),
    [
        ("index.html", "overview-of-commits.html"),
        ("scenario/a-scenario.commits.html", "commits-interleaved.html"),
    ],
)
def test_a_comparison_of_commits_is_as_it_was_reviewed(name: str, golden: str) -> None:
    _compare(pages_of([a_commit_comparison()])[name], golden)


@pytest.fixture(scope="module")
def of_a_fleet() -> dict[str, str]:
    return pages_of(**fleet_inputs())


@pytest.mark.parametrize(
    ("name", "golden"), [("hosts.html", "hosts.html"), ("history.html", "history-of-hosts.html")]
)
def test_a_page_of_many_hosts_is_as_it_was_reviewed(
    of_a_fleet: dict[str, str], name: str, golden: str
) -> None:
    _compare(of_a_fleet[name], golden)


def _compare(text: str, golden: str) -> None:
    if os.environ.get("COREBOUND_GOLDEN") == "write":
        (GOLDEN / golden).write_text(text, "utf-8")

    assert text == (GOLDEN / golden).read_text("utf-8")
