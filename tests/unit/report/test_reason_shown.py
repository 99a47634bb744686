"""Why a change was accepted, wherever the site shows that it was."""

from __future__ import annotations

import csv
import random

import pytest
from msgspec.structs import replace

from corebound.analysis.change_history import build_change_history
from corebound.records.decisions import Decision
from corebound.records.history import Series
from corebound.report import site
from corebound.report.inputs import SiteInputs
from corebound.report.pages.changes import group_changes
from corebound.report.site import render_pages
from corebound.stats.history.regressions import Change, analyse
from support.build import a_series
from support.report_sample import NOW, pages_of

WHY = "the <new> parser checks what it reads"


def stepped(cell: str = "n=1", seed: int = 1) -> Series:
    """Eighty nights, the later half a fifth slower."""
    noise = random.Random(seed)
    values = [1e6 * (1.2 if at >= 40 else 1) * noise.lognormvariate(0, 0.01) for at in range(80)]
    return a_series(values, project="trees", scenario="io.read", cell=cell)


def accepted(change: Change, because: str = WHY) -> Decision:
    return Decision(
        id=change.id, state="accepted", because=because, at="2027-01-01T00:00:00Z",
        location=change.place,
    )  # fmt: skip


def made_of(*decisions: Decision) -> dict[str, str]:
    return pages_of((), series=(stepped(),), decisions=decisions)


def test_the_reason_is_known_by_the_id_that_the_change_has_today() -> None:
    (change,) = analyse([stepped()]).changes
    decision = replace(accepted(change), id="as it was called when it was seen first")

    assert build_change_history([change.series], decisions=[decision]).because(change) == WHY
    assert build_change_history([change.series]).because(change) == ""


def test_the_reason_of_what_came_back_is_none() -> None:
    (change,) = analyse([stepped()]).changes
    fixed = replace(accepted(change), state="fixed", at=change.series.points[45].at)

    history = build_change_history([change.series], decisions=[fixed])

    assert history.status(change) == "open"
    assert history.because(change) == ""


@pytest.mark.parametrize("page", ["history.html", "feed.xml"])
def test_pages_and_the_feed_say_why_a_change_was_accepted(page: str) -> None:
    (change,) = analyse([stepped()]).changes

    text = made_of(accepted(change))[page]

    assert "because the &lt;new&gt; parser checks what it reads" in text
    assert "because" not in made_of()[page]


def test_a_benchmarks_page_says_why_its_change_was_accepted() -> None:
    (change,) = analyse([stepped()]).changes
    made = made_of(accepted(change))

    (page,) = (text for name, text in made.items() if name.startswith("history/"))
    assert "because the &lt;new&gt; parser checks what it reads" in page


def test_the_table_for_machines_has_the_reason() -> None:
    (change,) = analyse([stepped()]).changes

    (line,) = csv.DictReader(made_of(accepted(change))["data/changes.csv"].splitlines())

    assert (line["status"], line["because"]) == ("accepted", WHY)


def test_changes_that_were_accepted_for_different_reasons_are_not_told_as_one() -> None:
    changes = analyse([stepped("n=1"), stepped("n=2", seed=2)]).changes
    told = [
        accepted(change, because) for change, because in zip(changes, ("this", "that"), strict=True)
    ]

    def rows(decisions: list[Decision]) -> int:
        history = build_change_history([change.series for change in changes], decisions=decisions)
        return len(group_changes(history.changes, history))

    assert rows([accepted(change) for change in changes]) == 1
    assert rows(told) == 2


def test_a_page_is_made_again_when_the_reason_is_another() -> None:
    series = stepped()
    changes = analyse([series]).changes
    keys: list[set[str]] = []
    for because in ("this", "that"):
        names: set[str] = set()
        decisions = [accepted(changes[0], because)]
        inputs = SiteInputs(
            records=(),
            now=NOW,
            series=(series,),
            decisions=decisions,
            sources={"trees": "0"},
        )

        def holds(_path: str, key: str, names: set[str] = names) -> bool:
            names.add(key)
            return False

        for _ in render_pages(inputs, (), site._renderer(inputs), holds, traces={}, raw=False):
            pass
        keys.append(names)

    assert not keys[0] & keys[1]
