"""On every page: tables behind charts, commands in rows, units, links and valid HTML."""

import contextlib
import html
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import feedparser
import html5lib
import pytest
import typer
from msgspec.structs import replace
from typer.testing import CliRunner

from corebound.analysis.suggested_commands import CommandLine, original_command
from corebound.cli.app import app
from corebound.records import jsonl
from corebound.records.history import HistoryPoints, Series
from corebound.records.launch_record import Launch
from corebound.records.run_record import Commit, Run
from support.build import a_run, a_series
from support.markup import Element, by_id, parse_html
from support.paths import GOLDEN
from support.report_sample import (
    COMMITS,
    NOW,
    a_preflight,
    a_sample,
    a_serving_sample,
    an_earlier_sample,
    pages_of,
    sample_history,
    sample_imports,
    small_nights,
)
from support.series import a_stepped_series

PAGES = sorted(page.name for page in GOLDEN.glob("*.html"))
# What another tool measured, corebound has no command for: its rows say so, its pages are all
# of it. The rows of the hosts' page are hosts and classes: one command at its top compares them.
MEASURED_ELSEWHERE = {"benchmark.html", "commits.html", "hosts.html"}
# How many rows and charts a page has at least, so that none passes for having lost them.
LEAST = {
    "benchmark.html": (0, 4),
    "claims.html": (2, 0),
    "commits-interleaved.html": (10, 1),
    "commits.html": (6, 0),
    "compare.html": (100, 3),
    "history-of-hosts.html": (7, 1),
    "history.html": (9, 5),
    "host.html": (4, 1),
    "hosts.html": (20, 0),
    "operators.html": (20, 2),
    "overview-with-history.html": (5, 1),
    "overview.html": (2, 0),
    "run.html": (37, 0),
    "scenario-history.html": (18, 8),
    "scenario-modes.html": (2, 0),
    "scenario.html": (50, 8),
    "serving.html": (8, 6),
    "tune.html": (4, 1),
}


def page(name: str) -> Element:
    return parse_html((GOLDEN / name).read_text("utf-8"))


def rows(root: Element) -> list[Element]:
    """The rows of all tables with values, but for heads, details and what groups others.

    In a heat map, every cell leads to a row of another table. Where time went is no measurement,
    and a summary counts the rows of the next table.
    """
    return [
        row
        for body in root.all("tbody")
        if (table := body.within("table")) is None
        or not (table.classes & {"heat", "summary"} or is_of_time(table))
        for row in body.all("tr")
        if "detail" not in row.classes
        and not any(element.attributes.get("scope") == "rowgroup" for element in row.all("th"))
    ]


def is_of_time(table: Element) -> bool:
    return any(caption.text == "Where the time went" for caption in table.all("caption"))


def commands(element: Element | None) -> list[str]:
    names = [] if element is None else [element.text for element in element.all("code")]
    return [text for text in names if text.startswith(("corebound ", "asv "))]


def row_commands(root: Element, row: Element) -> list[str]:
    """Those in the row or its details, or that its table names as every row's."""
    table, body = row.within("table"), row.within("tbody")
    assert table is not None
    named = table.attributes.get("aria-details")
    details = [
        command
        for other in (body.all("tr") if body else ())
        if "detail" in other.classes
        for command in commands(other)
    ]
    return commands(row) or details or (commands(by_id(root, named)) if named else [])


def test_every_cell_of_a_heat_map_with_a_value_leads_to_a_row_with_a_command() -> None:
    root = page("scenario.html")
    (heat,) = (table for table in root.all("table") if "heat" in table.classes)
    links = [link.attributes["href"] for link in heat.all("a")]

    assert len(links) >= 15
    for link in links:
        row = by_id(root, link.removeprefix("#"))
        assert row is not None, link
        assert row_commands(root, row), link


def has_none_recorded(row: Element) -> bool:
    return any(
        element.tag in {"small", "span"} and element.text == "no command recorded"
        for element in row.all()
    )


def charts(root: Element) -> list[Element]:
    """Drawings that are not part of a row's own figures: those are told beside them."""
    elements = [element for element in root.all("svg") if not element.classes & {"swatch", "spark"}]
    elements = [element for element in elements if element.within("tr") is None]
    elements += [element for element in root.all("ul") if "machine" in element.classes]
    elements += [element for element in root.all("figure") if "piles" in element.classes]
    courses = [
        element
        for element in root.all("td")
        if "line" in element.classes and any(element.all("svg"))
    ]
    return [*elements, *courses]


def table_behind(root: Element, chart: Element) -> Element | None:
    """The table that a chart names, or that stands in its figure; of a course its row."""
    if chart.tag == "td":
        return chart.within("table")
    element = chart if chart.tag == "figure" else chart.within("figure")
    if element is None:
        return None
    if "piles" in element.classes and element.parent is not None:
        return next(element.parent.all("table"), None)
    named = element.attributes.get("aria-details")
    there = by_id(root, named) if named else None
    if there is not None:
        return there if there.tag == "table" else None
    return next(element.all("table"), None)


def test_no_page_is_left_out() -> None:
    assert sorted(LEAST) == PAGES


@pytest.mark.parametrize("name", [name for name in PAGES if name not in MEASURED_ELSEWHERE])
def test_every_row_has_the_command_that_reproduces_it(name: str) -> None:
    root = page(name)
    elements = rows(root)

    assert len(elements) >= LEAST[name][0]
    without = [
        row.text.strip()[:80]
        for row in elements
        if not row_commands(root, row) and not has_none_recorded(row)
    ]
    assert without == []


@pytest.mark.parametrize("name", PAGES)
def test_every_chart_has_a_table_behind_it(name: str) -> None:
    root = page(name)
    elements = charts(root)

    assert len(elements) >= LEAST[name][1]
    for chart in elements:
        table = table_behind(root, chart)
        assert table is not None, chart.attributes
        assert any(rows(table)), chart.attributes


@pytest.mark.parametrize("name", ["history.html", "overview-with-history.html"])
def test_beside_every_course_stand_its_latest_figure_with_its_interval_and_its_span(
    name: str,
) -> None:
    root = page(name)
    courses = [
        element
        for element in root.all("td")
        if "line" in element.classes and any(element.all("svg"))
    ]

    assert courses
    for element in courses:
        row = element.within("tr")
        assert row is not None
        assert " to " in row.text.replace("\N{NO-BREAK SPACE}", " ")


# A run's page has its records where they lie beside the site, which these do not; of the others
# there are only the sections that other pages of their kind do not have.
WITHOUT_DOWNLOADS = {"run.html", "serving.html", "commits-interleaved.html"}


@pytest.mark.parametrize("name", [name for name in PAGES if name not in WITHOUT_DOWNLOADS])
def test_the_figures_of_every_page_can_be_downloaded_there_or_one_link_further(name: str) -> None:
    links = [element.attributes["href"].partition("#")[0] for element in page(name).all("a")]

    assert [link for link in links if link.endswith((".csv", ".json", ".js")) or "run/" in link]


@pytest.mark.parametrize("name", PAGES)
def test_what_is_named_as_a_detail_is_there(name: str) -> None:
    root = page(name)
    named = [
        element.attributes["aria-details"]
        for element in root.all()
        if "aria-details" in element.attributes
    ]

    assert [name for name in named if by_id(root, name) is None] == []


def test_lists_of_what_did_not_count_have_commands_too() -> None:
    root = page("overview-with-history.html")
    failed = by_id(root, "failed")
    assert failed is not None

    items = list(failed.all("li"))

    assert items
    assert all(commands(item) for item in items)


EVIL = "</title></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&]]>\x07\u202e"


def foreign() -> Iterator[tuple[Run, tuple[Launch, ...]]]:
    """The sample's runs, in which all that comes from outside is markup."""
    for run, launches in (an_earlier_sample(), a_sample(), a_serving_sample()):
        commit = Commit(sha="4e1d9c7a" * 5, subject=EVIL, committed_at=NOW, dirty=False)
        host = replace(run.host, name=EVIL, cpu_model=EVIL, kernel=EVIL)
        sources = tuple(
            replace(one, document={**one.document, "title": EVIL, "question": EVIL, "source": EVIL})
            for one in run.scenarios
        )
        checks = tuple(replace(check, value=EVIL, why=EVIL) for check in a_preflight())
        yield (
            replace(run, commit=commit, host=host, scenarios=sources, preflight=checks),
            tuple(
                launch
                if launch.status == "ok"
                else replace(
                    launch,
                    reason=EVIL,
                    log=EVIL,
                    fix=EVIL,
                    evidence=(EVIL,),
                    leftover_processes=(EVIL,),
                )
                for launch in launches
            ),
        )


def foreign_past() -> tuple[Series, ...]:
    commit = Commit(sha="<b>" * 10, subject=EVIL, committed_at=NOW, dirty=False)
    imported = [
        replace(
            series,
            project=EVIL,
            host=EVIL,
            host_name=EVIL,
            title=EVIL,
            cell=series.cell + EVIL,
            points=HistoryPoints.of(replace(point, commit=commit) for point in series.points),
        )
        for series in sample_history()
        if series.project
    ]
    return (
        *(series for series in sample_history() if not series.project),
        *imported,
        a_series([1.0, 2.0]),
    )


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    imports = tuple(replace(profile, name=EVIL, source=EVIL) for profile in sample_imports())
    return pages_of(list(foreign()), profiles=imports, series=foreign_past())


def test_no_foreign_text_breaks_a_page_or_becomes_an_element(made: dict[str, str]) -> None:
    pages = {name: text for name, text in made.items() if name.endswith(".html")}
    kinds = {name.split("/")[0] for name in pages}
    assert kinds >= {"index.html", "scenario", "history", "history.html", "run", "host", "compare"}
    for name, text in pages.items():
        parser = html5lib.HTMLParser(namespaceHTMLElements=False)
        tree = parser.parse(text)
        assert parser.errors == [], name
        # The only scripts are ours, by their addresses; an icon is a link.
        scripts = {one.get("src", "").removeprefix("../") for one in tree.iter("script")}
        assert "assets/site.js" in scripts
        assert scripts <= {"assets/site.js", "assets/pairwise.js", "assets/compare.js"}
        assert list(tree.iter("img")) == []
        handlers = [key for one in tree.iter() for key in one.attrib if str(key).startswith("on")]
        assert handlers == []


def test_no_foreign_text_turns_around_the_text_beside_it(made: dict[str, str]) -> None:
    pages = {name: text for name, text in made.items() if name.endswith((".html", ".xml"))}

    assert not [name for name, text in pages.items() if "\u202e" in text]


def test_the_points_of_a_zoom_cannot_end_their_script(made: dict[str, str]) -> None:
    for name, text in made.items():
        if name == "data/search.js":
            json.loads(text.removeprefix("corebound.index = ").removesuffix(";\n"))
        elif name.endswith(".js"):
            json.loads(text.removeprefix("corebound.keep(").removesuffix(");\n"))


def test_the_feed_is_atom_that_a_reader_takes_whatever_foreign_text_says(
    made: dict[str, str],
) -> None:
    feed = feedparser.parse(made["feed.xml"])

    assert not feed.bozo
    assert feed.version == "atom10"
    assert feed.entries
    assert all(one.id and one.updated_parsed and one.link for one in feed.entries)
    assert "alert(1)" in feed.entries[0].summary + feed.entries[0].title


ELSEWHERE = "else where/it's"


RECORDS = small_nights(2)


@pytest.fixture(scope="module")
def elsewhere() -> dict[str, str]:
    stepped = a_stepped_series("a-scenario", 1.5, project=None, host=RECORDS[0][0].host.id)
    return pages_of(
        RECORDS,
        series=[stepped, *(series for series in sample_history() if series.project)],
        profiles=sample_imports(),
        compared=[COMMITS],
        records_folder=ELSEWHERE,
    )


def commands_of(page: str) -> list[str]:
    """Every command of corebound's own that a page shows, as it would be copied."""
    shown = re.findall(r"<(?:code|pre)[^>]*>(.*?)</(?:code|pre)>", page, re.DOTALL)
    texts = (html.unescape(re.sub(r"<[^>]+>", "", one)) for one in shown)
    return [line for text in texts for line in text.splitlines() if line.startswith("corebound ")]


def test_every_command_on_every_page_finds_the_records_where_they_are(
    elsewhere: dict[str, str],
) -> None:
    # What was asked of a run stays on its page as it was asked.
    asked = {(f"run/{run.id}.html", shlex.join(run.argv)) for run, _ in RECORDS}
    pages = {name: commands_of(text) for name, text in elsewhere.items() if name.endswith("html")}

    takes = {path for path, command in _leaves(typer.main.get_command(app)) if _takes(command)}
    wrong = {
        f"{name}: {line}"
        for name, lines in pages.items()
        for line in lines
        if (name, line) not in asked
        and (_command(line) in takes) != (f"--records {shlex.quote(ELSEWHERE)}" in line)
    }

    assert wrong == set()
    seen = {_command(line) for lines in pages.values() for line in lines}
    assert {("run",), ("reproduce",), ("compare",), ("import", "profile")} <= seen


def test_a_site_of_nothing_says_what_to_run_for_that_folder() -> None:
    page = pages_of([], records_folder="r")["index.html"]

    # The first of them also stands below the headline.
    assert [*dict.fromkeys(commands_of(page))] == [
        "corebound run scenarios --profile quick --budget 15m --records r",
        "corebound report --records r",
    ]


def test_the_commands_in_the_data_do_too(elsewhere: dict[str, str]) -> None:
    scenario = "data/a-scenario"
    for name in (f"{scenario}.csv", f"{scenario}.json", "data/changes.csv", "feed.xml"):
        told = re.findall(r"corebound (?:run|reproduce) .*", elsewhere[name])

        assert told
        assert all("--records 'else where/" in html.unescape(line) for line in told)


def _leaves(group: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    context = typer.Context(group)
    for name in group.list_commands(context):
        document = group.get_command(context, name)
        if hasattr(document, "list_commands"):
            yield from _leaves(document, (*above, name))
        else:
            yield (*above, name), document


def _takes(command: Any) -> bool:
    return any("--records" in one.opts for one in command.params)


def _command(line: str) -> tuple[str, ...]:
    parts = line.split()[1:]
    return tuple(parts[:2] if parts[0] in {"import", "export"} else parts[:1])


def test_where_the_records_are_is_told_to_what_reads_them() -> None:
    assert CommandLine("corebound run a.yaml").at("my recs") == (
        "corebound run a.yaml --records 'my recs'"
    )
    assert CommandLine("corebound run a.yaml").at("") == "corebound run a.yaml"
    assert CommandLine("corebound topology", reads_records=False).at("x") == "corebound topology"


def test_what_was_asked_for_with_a_folder_of_records_keeps_it() -> None:
    run = replace(a_run(), argv=("corebound", "run", "a", "--records", "r"))

    assert original_command(run).at("x") == "corebound run a --records r"


def test_a_site_of_another_folder_shows_it_and_one_of_the_usual_folder_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run, launches = a_serving_sample()
    for folder in ("my records", "reports/records"):
        file = jsonl.file_of(run, Path(folder))
        with contextlib.closing(jsonl.begin(run, file)) as appender:
            for launch in launches[:4]:
                appender.append(launch)

    for parts in (["--records", "my records"], []):
        assert CliRunner().invoke(app, ["report", *parts]).exit_code == 0
        pages = [path.read_text() for path in Path("reports/site").rglob("*.html")]
        told = [line for page in pages for line in commands_of(page)]

        assert any("reproduce" in line for line in told)
        assert any("--records 'my records'" in line for line in told) is bool(parts)
