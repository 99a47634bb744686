"""The navigation of every page: which parts it links, and what it says of them."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.analysis.change_history import ChangeHistory, build_change_history
from corebound.report import site
from corebound.report.inputs import SiteInputs
from corebound.report.navigation import navigation_links, news_rule
from support.build import a_machine, a_run, a_series
from support.markup import Element, parse_html
from support.report_sample import NOW, pages_of, site_over_time, small_nights

STEADY = [1e6 * (1 + night % 3 / 500) for night in range(60)]
SLOWER = [value * (1.2 if night > 40 else 1.0) for night, value in enumerate(STEADY)]


def navigation(page: str) -> dict[str, Element]:
    """The links of a page's navigation by their text."""
    (bar,) = (each for each in parse_html(page).all("nav") if "nav" in each.classes)
    return {link.text: link for link in bar.all("a")}


def test_parts_that_do_not_exist_are_left_out() -> None:
    links = navigation_links([(a_run(), ())], {"Scenarios"})

    assert [*links] == ["Overview", "Scenarios", "Hosts"]


def test_a_single_host_is_linked_directly_and_several_by_their_list() -> None:
    two = [(a_run(), ()), (a_run(run_id="r2", host=a_machine(name="other")), ())]

    assert [[*navigation_links(records, ()).values()][-1] for records in (two[:1], two)] == [
        "host/a-host-0123456789ab.html",
        "hosts.html",
    ]


def test_every_page_links_every_part() -> None:
    html = {name: text for name, text in site_over_time().items() if name.endswith(".html")}
    parts = ["Overview", "Scenarios", "History", "Compare", "Hosts", "Claims", "Operators"]

    assert {name: [*navigation(text)] for name, text in html.items()} == dict.fromkeys(html, parts)


@pytest.mark.parametrize(
    ("page", "part", "current"),
    [
        ("index.html", "Overview", "page"),
        ("scenario/resnet50-inference.html", "Scenarios", "true"),
        ("history.html", "History", "page"),
        ("history/io.Read.time_read-b69fd9f5.html", "History", "true"),
        ("compare.html", "Compare", "page"),
        ("compare/r0-r1.html", "Compare", "true"),
        ("host/bench-01-0123456789ab.html", "Hosts", "true"),
        ("run/r1.html", "Hosts", "true"),
        ("claims.html", "Claims", "page"),
        ("operators.html", "Operators", "page"),
    ],
)
def test_a_page_marks_the_part_it_belongs_to(page: str, part: str, current: str) -> None:
    marked = {
        name: link.attributes["aria-current"]
        for name, link in navigation(site_over_time()[page]).items()
        if "aria-current" in link.attributes
    }

    assert marked == {part: current}


def test_every_page_has_a_title_of_its_own() -> None:
    pages = [text for name, text in site_over_time().items() if name.endswith(".html")]
    titles = {re.search("<title>(.+?)</title>", page) for page in pages}

    assert len({title[1] for title in titles if title}) == len(pages)


def test_a_site_of_nothing_has_no_navigation() -> None:
    assert 'class="nav"' not in pages_of([])["index.html"]


def test_the_list_of_hosts_has_the_latest_first() -> None:
    (earlier, launches), latest = small_nights(2)
    earlier = replace(earlier, host=replace(earlier.host, id="b", name="b"))

    page = parse_html(pages_of([(earlier, launches), latest])["hosts.html"])

    rows = [row for body in page.all("tbody") for row in body.all("tr")]
    assert [next(row.all("a")).text for row in rows] == ["a-host", "b"]


def a_history(*regressed: str) -> ChangeHistory:
    return build_change_history(
        [a_series(SLOWER, scenario=name, title=name) for name in regressed]
        + [a_series(STEADY, scenario="steady")]
    )


def test_the_style_shows_how_many_benchmarks_regressed() -> None:
    assert news_rule(a_history()) == ""
    assert '"1" / ", 1 series with new regressions"' in news_rule(a_history("a"))
    assert '"2" / ", 2 series with new regressions"' in news_rule(a_history("a", "b"))


def test_news_change_no_page_of_an_old_run(tmp_path: Path) -> None:
    ((run, launches),) = small_nights(1)
    steady, slower = (
        a_series(values, scenario="a-scenario", host=run.host.id) for values in (STEADY, SLOWER)
    )
    written = []
    for name, series in (("steady", steady), ("slower", slower)):
        site.write(SiteInputs(records=[(run, launches)], now=NOW, series=[series]), tmp_path / name)
        files = ("assets/site.css", f"run/{run.id}.html")
        written.append([(tmp_path / name / file).read_bytes() for file in files])

    (style, page), (other_style, other_page) = written
    assert style != other_style
    assert page == other_page
