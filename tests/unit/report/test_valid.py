"""Every page as a parser takes it: valid HTML and Atom, whatever foreign text says."""

from __future__ import annotations

import json
from collections.abc import Iterator

import feedparser
import html5lib
import pytest
from msgspec.structs import replace

from corebound.records.history import HistoryPoints, Series
from corebound.records.launch_record import Launch
from corebound.records.run_record import Commit, Run
from support.build import a_series
from support.report_sample import (
    NOW,
    a_preflight,
    a_sample,
    a_serving_sample,
    an_earlier_sample,
    pages_of,
    sample_history,
    sample_imports,
)

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
                else replace(launch, reason=EVIL, log=EVIL, fix=EVIL)
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


def test_every_page_is_html_that_a_strict_parser_takes(made: dict[str, str]) -> None:
    faults = []
    for name, text in made.items():
        if name.endswith(".html"):
            parser = html5lib.HTMLParser(namespaceHTMLElements=False)
            parser.parse(text)
            faults += [(name, fault) for fault in parser.errors]

    assert faults == []


def test_no_foreign_text_becomes_an_element_or_an_attribute(made: dict[str, str]) -> None:
    kinds = {name.split("/")[0] for name in made if name.endswith(".html")}
    assert kinds >= {"index.html", "scenario", "history", "history.html", "run", "host", "compare"}
    for name, text in made.items():
        if not name.endswith(".html"):
            continue
        tree = html5lib.parse(text, namespaceHTMLElements=False)
        # The only script is ours, by its address; an icon is a link.
        assert [one.get("src", "")[-14:] for one in tree.iter("script")] == ["assets/site.js"]
        assert list(tree.iter("img")) == []
        handlers = [key for one in tree.iter() for key in one.attrib if str(key).startswith("on")]
        assert handlers == []


def test_the_points_of_a_zoom_cannot_end_their_script(made: dict[str, str]) -> None:
    for name, text in made.items():
        if name.endswith(".js"):
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
