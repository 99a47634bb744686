"""Long names break where their parts end, on every page; they are heard and copied whole."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from corebound.records.history import Series
from corebound.report.inputs import RequestedComparison
from corebound.report.render import keep_together, nowrap, soft_break
from support.build import a_series
from support.markup import Element, parse_html
from support.report_sample import a_sample, pages_of, sample_history

# Each of one word, longer than any column need be.
BENCHMARK = "core.runner.time_iterkeys_of_all_kinds"
CELL = "n_layers=3,environment=virtualenv_py3.12"
HOST = "a_machine_of.many_words"

# What is copied to a terminal, or is only heard.
_NOT_SEEN = ("code", "pre", "title", "caption")


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        (BENCHMARK, "core.|runner.|time_|iterkeys_|of_|all_|kinds"),
        ("n_layers=3,environment=py3.12", "n_|layers=|3,|environment=|py3.12"),
        # Numbers stay whole, and so does what is short, or has nothing to break at.
        ("n=1000000000,m=0.0000000001", "n=|1000000000,|m=|0.0000000001"),
        ("n_1=2, m=3.", "n_1=2, m=3."),
        ("averylongnamewithoutanything", "averylongnamewithoutanything"),
        # Not between dots, nor where a word ends.
        ("module.__init__...end=", "module.__|init__...|end="),
        ("<b>.time_'x'&amp", "&lt;b&gt;.|time_|&#39;x&#39;&amp;amp"),
    ],
)
def test_a_word_may_break_behind_the_signs_that_join_its_parts(name: str, broken: str) -> None:
    assert soft_break(name) == broken.replace("|", '<wbr aria-hidden="true">')


def a_project() -> list[Series]:
    values = [1e6 * (1.2 if day >= 40 else 1) + day % 7 * 1e3 for day in range(60)]
    changed = {"project": "p", "host": HOST, "host_name": HOST}
    return [
        a_series(values, scenario=BENCHMARK, title=BENCHMARK, cell=CELL, **changed),
        a_series(values, scenario=BENCHMARK, title=BENCHMARK, cell=CELL + "1", **changed),
        a_series([*values, None], scenario=BENCHMARK + "2", title=BENCHMARK + "2", **changed),
        a_series([None], scenario=BENCHMARK + "3", title=BENCHMARK + "3", **changed),
    ]


def texts(element: Element) -> Iterator[str]:
    for part in element.parts:
        if isinstance(part, str):
            yield part
        elif part.tag not in _NOT_SEEN and "hidden" not in part.classes:
            yield from texts(part)


def test_no_name_of_an_imported_benchmark_or_cell_stands_anywhere_in_one_piece() -> None:
    all_series = a_project()
    shas = [
        point.commit.sha
        for point in (all_series[0].points[10], all_series[0].points[50])
        if point.commit
    ]
    pages = {
        name: text
        for name, text in pages_of(
            [],
            series=all_series,
            compared=[RequestedComparison(project="p", before=shas[0], after=shas[1])],
        ).items()
        if name.endswith(".html")
    }

    whole = {
        (name, text.strip())
        for name, page in pages.items()
        for text in texts(parse_html(page))
        for part in (BENCHMARK, CELL, "n_layers", "environment=virtual", HOST)
        if part in text
    }
    assert len(pages) >= 5
    assert whole == set()


def test_what_a_page_says_is_the_same_with_and_without_its_breaks() -> None:
    for name, page in pages_of([a_sample()], series=[*sample_history(), *a_project()]).items():
        if name == "history.html":
            assert BENCHMARK in parse_html(page).text


def test_our_own_settings_have_no_more_elements_for_it() -> None:
    page = pages_of([a_sample()])["index.html"]

    assert "<wbr" not in page


def test_a_long_unit_goes_on_the_next_line_and_figures_do_not() -> None:
    glue = "\N{NO-BREAK SPACE}"

    assert nowrap("0.160 to 8.24 % overhead") == f"0.160{glue}to{glue}8.24 % overhead"
    assert nowrap("[1.2, ∞] particles / second") == f"[1.2,{glue}∞] particles / second"
    assert " " not in nowrap("[800 µs, 1.20 ms]") + nowrap("122 to 193 KiB") + nowrap("3 %")
    assert nowrap("–") == "–"


def test_an_option_or_a_day_in_a_sentence_stays_on_one_line_with_its_dashes() -> None:
    text = "ended early (--budget 1m40s); corebound run --resume goes on, not a--b <i> 2026-11-22 7"
    told = keep_together(text)

    assert re.findall("<span[^>]*nowrap[^>]*>([^<]*)</span>", told) == [
        "--budget",
        "--resume",
        "2026-11-22",
    ]
    assert parse_html(told).text == text
