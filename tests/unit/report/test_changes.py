"""Rows of changes: status, reason, direction of rates, and changes with one commit."""

import csv
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.analysis.change_history import build_change_history, change_size, size_interval
from corebound.analysis.commit_comparison import compare_imported_commits
from corebound.analysis.wording import plain
from corebound.exchange.measures import more_is_better
from corebound.present.changes import group_changes
from corebound.records import history_files
from corebound.records.decisions import Decision
from corebound.records.history import Series
from corebound.report import site
from corebound.report.history.panel import history_panel
from corebound.report.inputs import PageContext, SiteInputs
from corebound.report.pages.compare import compare_page
from corebound.report.pages.whats_new import whats_new
from corebound.report.site import render_pages
from corebound.stats.history.regressions import analyse
from support.asv_projects import read_project, result_file, result_tree
from support.build import a_series
from support.report_sample import NOW, pages_of
from support.series import accepted
from support.tables import column

WHY = "the <new> parser checks what it reads"


def stepped(cell: str = "n=1", seed: int = 1, since: int = 40) -> Series:
    """Eighty nights, a fifth slower since one of them."""
    noise = random.Random(seed)
    values = [1e6 * (1.2 if at >= since else 1) * noise.lognormvariate(0, 0.01) for at in range(80)]
    return a_series(values, project="trees", scenario="io.read", cell=cell)


def made_of(*decisions: Decision) -> dict[str, str]:
    return pages_of((), series=(stepped(),), decisions=decisions)


def test_the_reason_is_known_by_the_id_that_the_change_has_today() -> None:
    (change,) = analyse([stepped()]).changes
    decision = replace(accepted(change, WHY), id="as it was called when it was seen first")

    assert build_change_history([change.series], decisions=[decision]).because(change) == WHY
    assert build_change_history([change.series]).because(change) == ""


def test_the_reason_of_what_came_back_is_none() -> None:
    (change,) = analyse([stepped()]).changes
    fixed = replace(accepted(change, WHY), state="fixed", at=change.series.points[45].at)

    history = build_change_history([change.series], decisions=[fixed])

    assert history.assessed[change.id].status == "new"
    assert history.because(change) == ""


@pytest.mark.parametrize("page", ["history.html", "feed.xml"])
def test_pages_and_the_feed_say_why_a_change_was_accepted(page: str) -> None:
    (change,) = analyse([stepped()]).changes

    text = made_of(accepted(change, WHY))[page]

    assert "because the &lt;new&gt; parser checks what it reads" in text
    assert "because the &lt;new" not in made_of()[page]


def test_the_table_for_machines_has_the_reason() -> None:
    (change,) = analyse([stepped()]).changes

    (line,) = csv.DictReader(made_of(accepted(change, WHY))["data/changes.csv"].splitlines())

    assert (line["status"], line["because"]) == ("acknowledged", WHY)


def test_changes_that_were_accepted_for_different_reasons_are_not_told_as_one() -> None:
    changes = analyse([stepped("n=1"), stepped("n=2", seed=2)]).changes
    told = [
        accepted(change, because) for change, because in zip(changes, ("this", "that"), strict=True)
    ]

    def rows(decisions: list[Decision]) -> int:
        history = build_change_history([change.series for change in changes], decisions=decisions)
        return len(group_changes(history.changes, history))

    assert rows([accepted(change, WHY) for change in changes]) == 1
    assert rows(told) == 2


def test_a_page_is_made_again_when_the_reason_is_another() -> None:
    series = stepped()
    changes = analyse([series]).changes
    keys: list[set[str]] = []
    for because in ("this", "that"):
        asked: set[str] = set()
        decisions = [accepted(changes[0], because)]
        inputs = SiteInputs(records=(), now=NOW, series=(series,), decisions=decisions)

        def are_fresh(key: str, _names: Sequence[str], asked: set[str] = asked) -> bool:
            asked.add(key)
            return False

        renderer = site._renderer(inputs)
        for _ in render_pages(inputs, (), renderer, are_fresh, traces={}, raw=False):
            pass
        keys.append(asked)

    assert not keys[0] & keys[1]


EARLY, LATE = (f"{day:040x}" for day in (10, 70))


def a_rate(step: float, **changed: object) -> Series:
    """Eighty nights of particles a second, from the 40th on so many times as many."""
    noise = random.Random(1)
    values = [1e6 * (step if day >= 40 else 1) * noise.lognormvariate(0, 0.01) for day in range(80)]
    by_name = {"project": "trees", "unit": "particles / second", "more_is_better": True} | changed
    return a_series(values, **by_name)


@pytest.mark.parametrize(
    "unit",
    [
        "particles / second", "particles/s", "rows per s", "rows per second", "MB/s", "1/s",
        "iterations/sec", "images/second", "req/min", "ops/s", "Items per minute", "GFLOPS",
        "FLOPS", "MFLOP/s", "tokens per hour", "iter / secs", "kB/ms", "it s⁻¹", "speedup",
    ],
)  # fmt: skip
def test_of_what_is_done_in_a_time_more_is_better(unit: str) -> None:
    assert more_is_better(unit)


@pytest.mark.parametrize(
    "unit",
    [
        "seconds", "s", "ns", "bytes", "unit", "%", "% overhead", "KB", "leaks", "", "seconds / op",
        "ms per iteration", "s/s", "seconds per second", "FLOPs", "ops", "steps", "bytes/sample",
        "errors per sequence", "/s", "per second", "J/step", "cycles per hourglass", "/" * 5000,
    ],
)  # fmt: skip
def test_of_all_else_less_is_better(unit: str) -> None:
    assert not more_is_better(unit)


def test_the_unit_of_a_benchmark_says_it_of_its_series(tmp_path: Path) -> None:
    about = {"track_rate": {"unit": "particles / second"}, "track_size": {"unit": "KB"}}
    results = {name: [[7.0], []] for name in about}

    all_series = read_project(result_tree(tmp_path, result_file(results), benchmarks=about)).series

    assert {series.scenario: series.more_is_better for series in all_series} == {
        "track_rate": True,
        "track_size": False,
    }


def test_it_is_kept_and_histories_of_before_say_that_less_is_better() -> None:
    series = a_rate(0.85)
    kept = [*history_files.encode([series])]
    before = [line.replace(b',"more_is_better":true', b"") for line in kept]

    assert history_files.decode(kept) == (series,)
    assert before != kept
    assert history_files.decode(before) == (replace(series, more_is_better=False),)


@pytest.mark.parametrize(("step", "worse"), [(0.85, True), (1.15, False)])
def test_a_rate_gets_worse_as_it_falls(step: float, worse: bool) -> None:
    (change,) = analyse([a_rate(step)]).changes

    assert change.is_regression is worse
    assert analyse([a_rate(step, more_is_better=False)]).changes[0].is_regression is not worse


@pytest.mark.parametrize(
    ("step", "tone", "sign", "word"),
    [
        (0.85, "bad", "▼", "× less"),
        (1.15, "good", "▲", "× more"),
        (0.25, "bad", "▼", "× less"),
        (4.0, "good", "▲", "× more"),
    ],
)
def test_a_size_is_that_of_the_figure_and_its_tone_that_of_the_judgement(
    step: float, tone: str, sign: str, word: str
) -> None:
    (change,) = analyse([a_rate(step)]).changes

    verdict = change_size(change)
    low, high = map(float, size_interval(change).split("–"))

    assert (verdict.tone, verdict.sign) == (tone, sign)
    assert verdict.word.endswith(word)
    assert low <= float(verdict.word.removesuffix(word)) <= high


@pytest.mark.parametrize(("step", "verdict"), [(0.85, "slower"), (1.15, "faster")])
def test_the_night_calls_a_rate_that_fell_slower(step: float, verdict: str) -> None:
    series = a_rate(step)
    lately = replace(series, points=series.points[:60])

    news = whats_new(build_change_history([lately]), ())

    assert news is not None
    assert plain(news.verdict) == f"1 series got {verdict}."


def test_a_chart_of_a_rate_says_that_higher_is_better() -> None:
    series = a_rate(1.0)
    history = build_change_history([series])

    panel = history_panel((series,), history, title="a chart")

    assert "higher is better" in panel.caption


@pytest.mark.parametrize(
    ("step", "text", "sign", "word"), [(0.85, "worse", "▼", "less"), (1.15, "better", "▲", "more")]
)
def test_two_commits_of_a_rate_differ_by_what_it_is_now_over_what_it_was(
    step: float, text: str, sign: str, word: str
) -> None:
    history = build_change_history([a_rate(step)])
    comparison = compare_imported_commits("trees", EARLY, LATE, history)

    page = compare_page(comparison, PageContext(now="2026-01-01T00:00:00Z", history=history))

    (series,) = comparison.series
    assert series.comparison is not None
    # Above 1 is better, as it is where less is.
    assert series.comparison.speedup_ratio == pytest.approx(step, rel=0.05)
    assert f"1 series {text}" in plain(page.hero.verdict)
    (judged,) = column(page.findings, "verdict")
    assert judged.text == f"{sign} {word}"
