"""The pages, byte for byte. `make golden` writes them again; the diff is reviewed."""

import functools
import re
from collections.abc import Callable

import pytest

from support.commit_sample import a_commit_comparison
from support.fleet_sample import fleet_inputs
from support.golden import assert_golden
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


def of_two_blocks() -> dict[str, str]:
    """A site of the sample's first block, and of the one with a launch that does not count."""
    run, launches = a_sample()
    return pages_of([(run, tuple(launch for launch in launches if launch.block in {0, 4}))])


SITES: dict[str, Callable[[], dict[str, str]]] = {
    "a run": lambda: pages_of([a_sample(), a_serving_sample()], profiles=sample_imports()),
    "two blocks": of_two_blocks,
    "two nights": site_over_time,
    "a race": lambda: pages_of([], tunings=[a_tuning()]),
    "two modes": lambda: pages_of([a_sample_of_two_modes()]),
    "commits": lambda: pages_of([a_commit_comparison()]),
    "a fleet": lambda: pages_of(**fleet_inputs()),
}


@functools.cache
def made(site: str) -> dict[str, str]:
    return SITES[site]()


@pytest.fixture
def pages(request: pytest.FixtureRequest) -> dict[str, str]:
    return made(request.param)


@pytest.mark.parametrize(
    ("pages", "name", "golden"),
    [
        ("a run", "index.html", "overview.html"),
        ("a run", "operators.html", "operators.html"),
        ("a run", "claims.html", "claims.html"),
        ("a run", "scenario/resnet50-inference.html", "scenario.html"),
        ("two blocks", "run/r1.html", "run.html"),
        ("two nights", "index.html", "overview-with-history.html"),
        ("two nights", "history.html", "history.html"),
        ("two nights", "history/io.Read.time_read-b69fd9f5.html", "benchmark.html"),
        ("two nights", "host/bench-01-0123456789ab.html", "host.html"),
        ("two nights", "compare/r0-r1.html", "compare.html"),
        ("two nights", "feed.xml", "feed.xml"),
        ("a race", TUNE_PAGE, "tune.html"),
        ("a fleet", "hosts.html", "hosts.html"),
    ],
    indirect=["pages"],
)
def test_a_page_is_as_it_was_reviewed(pages: dict[str, str], name: str, golden: str) -> None:
    assert_golden(pages[name], golden)


@pytest.mark.parametrize(
    ("pages", "name", "golden", "sections"),
    [
        ("a run", "scenario/torchserve.html", "serving.html", ("cpus", "serving")),
        ("two nights", COMMITS_PAGE, "commits.html", ("findings", "runs")),
        (
            *("two nights", "scenario/resnet50-inference.html"),
            *("scenario-history.html", ("history",)),
        ),
        ("two modes", "scenario/pool.html", "scenario-modes.html", ("configurations",)),
        (
            *("commits", "scenario/a-scenario.commits.html", "commits-interleaved.html"),
            ("pairs", "builds", "reproduce"),
        ),
        ("a fleet", "history.html", "history-of-hosts.html", ("timeline", "triage")),
    ],
    indirect=["pages"],
)
def test_what_a_page_has_more_than_others_of_its_kind_is_as_it_was_reviewed(
    pages: dict[str, str], name: str, golden: str, sections: tuple[str, ...]
) -> None:
    found = [
        re.search(rf'<section id="{section}".*?</section>\n', pages[name], re.DOTALL)
        for section in sections
    ]

    assert_golden("".join(each[0] for each in found if each), golden)
