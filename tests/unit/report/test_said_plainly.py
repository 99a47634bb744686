"""What a page may not leave unsaid: what is undecided, too short, or of the same code."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.analysis.comparison import RunComparison, compare_runs
from corebound.analysis.fairness import checks
from corebound.analysis.selection import latest_studies
from corebound.cli.commands import compare
from corebound.records.launch_record import Launch
from corebound.records.run_record import Commit, Run
from corebound.report.pages.compare import compare_page
from corebound.report.scenario.cells import comparison_table
from corebound.report.scenario.threads import thread_activity
from corebound.scenario.matrix import expand
from corebound.stats.history.series import joined, series_of_run
from support.build import a_launch, a_placement, a_run, a_scenario, a_thread, a_worker
from support.report_sample import NOW, pages_of, sample_history


def a_record(
    name: str, *, one_cpu_ms: float = 10.0, commit: Commit | None = None, keys: int = 2, **run: Any
) -> tuple[Run, tuple[Launch, ...]]:
    """A run of six launches each of unbound, 10 ms, and of one CPU."""
    cells = {cell.key: cell for cell in expand(a_scenario(), "a-scenario.yaml")}
    rows = (("binding=none", 10.0), ("binding=one-cpu", one_cpu_ms))[-keys:]
    launches = tuple(
        a_launch(
            cell=cells[key],
            block=block,
            workers=(a_worker(wall_ns=(round(ms * 1e6 * (1 + 0.005 * (-1) ** block)),) * 30),),
        )
        for block in range(6)
        for key, ms in rows
    )
    return replace(a_run(**run), id=name, commit=commit), launches


def test_an_overview_of_two_runs_has_its_verdict_and_says_too_short() -> None:
    records = [
        a_record("one", started_at="2026-01-02T03:04:05Z"),
        a_record("two", started_at="2026-01-02T03:14:05Z", one_cpu_ms=10.15),
    ]

    known = joined(one for record in records for one in series_of_run(*record))
    page = pages_of(records, series=known)["index.html"]

    assert "too short to tell" in page
    assert "nothing new" not in page
    assert "equivalent</small>" in page


def compared(before: Commit | None, after: Commit | None) -> RunComparison:
    return compare_runs(
        a_record("one", one_cpu_ms=10.0, commit=before),
        a_record("two", one_cpu_ms=8.0, commit=after),
    )


def a_commit(sha: str, *, dirty: bool = False) -> Commit:
    return Commit(sha=sha * 40, subject="A subject", committed_at="2026-01-01", dirty=dirty)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (None, None, "commit unknown: host or noise"),
        (a_commit("a"), None, "commit unknown: host or noise"),
        (a_commit("a"), a_commit("a"), "same commit: host or noise"),
        (a_commit("a"), a_commit("a", dirty=True), ""),
        (a_commit("a"), a_commit("b"), ""),
    ],
)
def test_a_difference_of_no_known_commit_says_so_on_the_page_and_in_the_terminal(
    before: Commit | None, after: Commit | None, said: str
) -> None:
    found = compared(before, after)

    (row,) = compare_page(found, now=NOW).findings.rows
    (told,) = (one for one in compare.text_of_runs(found).rows if one.compared.is_finding)
    assert row.needed == said
    assert row.verdict.tone == ("plain" if said else "good")
    assert told.verdict == (f"▲ faster, {said.split(':', maxsplit=1)[0]}" if said else "▲ faster")


def test_a_page_without_a_comparison_draws_no_axis_and_says_that_the_baseline_is_missing() -> None:
    (study,) = latest_studies([a_record("one", keys=1)])
    table = comparison_table(study)
    html = pages_of([a_record("one", keys=1)])

    assert table is not None
    assert (table.title, table.rows) == ("Nothing to compare", ())
    assert 'class="forest"' not in html["scenario/a-scenario.html"]
    assert "1 cell of the scenario had no launch" in html["scenario/a-scenario.html"]
    assert "baseline not measured" in html["scenario/a-scenario.html"]
    assert "baseline not measured" in html["index.html"]


@pytest.mark.parametrize(
    ("looks", "said"), [(1, "1 look: too short to see a move"), (60, "60 looks")]
)
def test_a_strip_says_how_often_somebody_looked(looks: int, said: str) -> None:
    run, launches = a_record("one")
    (study,) = latest_studies([(run, tuple(replace(one, looks=looks) for one in launches))])

    shown = thread_activity(study)

    assert shown is not None
    assert all(panel.caption.endswith(f", {said}") for panel in shown.panels)


def test_a_binding_is_proven_with_as_many_looks_as_the_least_seen_launch_had() -> None:
    cell = next(one for one in expand(a_scenario(), "s.yaml") if one.key == "binding=one-cpu")
    launches = tuple(
        a_launch(
            cell=cell,
            block=block,
            placement=a_placement(cpus=(0,), bound=True),
            workers=(a_worker(threads=(a_thread(stays=((0, 0, 100),)),)),),
        )
        for block in range(3)
    )
    seen = tuple(replace(one, looks=looks) for one, looks in zip(launches, (7, 2, 9), strict=True))
    (study,) = latest_studies([(a_run(), seen)])

    assert checks(study)[0].evidence == (
        "binding proven in 3 of 3 launches; the least seen had 2 looks"
    )


def test_a_figure_without_an_interval_and_a_row_without_a_command_say_so() -> None:
    page = pages_of([], series=sample_history())["history.html"]

    assert re.search(r"2\.69\sms<small>no interval</small>", page)
    assert "no command recorded</span>" in page
    assert "imported</span>" not in page
