"""The feed of changes is found by who reads feeds: the pages about all changes name it."""

from __future__ import annotations

import pytest

from support.build import a_series
from support.report_sample import pages_of

LINK = '<link rel="alternate" type="application/atom+xml" title="Changes" href="feed.xml">'


@pytest.mark.parametrize("name", ["index.html", "history.html"])
def test_where_there_is_a_history_the_pages_about_it_name_the_feed(name: str) -> None:
    made = pages_of((), series=[a_series([1e6] * 9, project="trees")])

    assert "feed.xml" in made
    assert LINK in made[name].partition("</head>")[0]


def test_without_a_history_there_is_no_feed_to_name() -> None:
    made = pages_of(())

    assert "feed.xml" not in made
    assert "atom" not in made["index.html"]
