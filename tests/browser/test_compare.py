"""Two commits that are compared in the browser, against what the terminal says of them."""

import random
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Page, expect

from browser.pages import DESK, PHONE, Windows, violations
from corebound.analysis.change_history import ChangeHistory, build_change_history
from corebound.analysis.commit_comparison import compare_imported_commits
from corebound.analysis.wording import compared_bounds
from corebound.present.compare import compare_table
from corebound.present.sections import Marked, Pair
from corebound.records.history import HistoryPoints, Series
from corebound.report import site
from corebound.report.inputs import SiteInputs
from support import needs
from support.build import a_machine, a_point, a_run, a_scenario, a_series
from support.report_sample import NOW

pytestmark = [pytest.mark.browser, needs.chromium, needs.libatomic]
COMMITS = 360
# Both at one level, on both sides of changes, one with a missing value, and two kernels.
PAIRS = ((300, 355), (20, 350), (100, 101), (150, 340), (355, 300))


def a_history(number: int) -> Series:
    """A series with up to two changes, as other tools record them: with intervals or without."""
    noise = random.Random(number)
    spread = noise.choice((0.002, 0.01, 0.05))
    begin = noise.choice((0, 0, 0, 200, COMMITS - 12))
    levels = {noise.randrange(COMMITS): noise.choice((0.7, 0.97, 1.02, 1.3, 2.0)) for _ in "12"}
    level = 10 ** noise.uniform(2, 9)
    points = []
    for commit in range(COMMITS):
        level *= levels.get(commit, 1.0)
        if commit < begin:
            continue
        value = level * noise.lognormvariate(0, spread)
        is_lost = noise.random() < 0.02
        points.append(
            a_point(
                None if is_lost else value,
                day=commit,
                bounds=(value * 0.98, value * 1.03) if number % 3 and not is_lost else None,
                environment_key=(("kernel", "6.2" if number % 5 == 0 and commit > 340 else "6.1"),),
            )
        )
    # A commit's hash begins with its number, as short names do with other digits.
    named = (replace(point, commit=replace(point.commit, sha=sha_of(point.at)))
             for point in points if point.commit)  # fmt: skip
    return replace(
        a_series([]),
        project="p",
        scenario=f"suite.time_{number % 4}",
        title=f"suite.time_{number % 4}",
        cell=f"n={number}",
        points=HistoryPoints.of(named),
        unit=("ns", "ns", "bytes", "requests / s")[number % 4],
        more_is_better=number % 4 == 3,
        confidence=0.99 if number % 2 else 0.95,
    )


def sha_of(at: str) -> str:
    return (at[:10].replace("-", "") + "00").ljust(40, "f")


@pytest.fixture(scope="module")
def history() -> ChangeHistory:
    return build_change_history([a_history(number) for number in range(24)])


@pytest.fixture(scope="module")
def compare_html(tmp_path_factory: pytest.TempPathFactory, history: ChangeHistory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    site.write(SiteInputs(records=[], now=NOW, series=history.series), folder)
    return folder / "compare.html"


def shas(pair: tuple[int, int]) -> tuple[str, str]:
    before, after = (sha_of(a_point(day=commit).at) for commit in pair)
    return before, after


def compared_here(windows: Windows, file: Path, pair: tuple[int, int], width: int = DESK) -> Page:
    page = windows.open(file, width=width)
    before, after = shas(pair)
    page.get_by_label("Before").select_option(before[:10])
    page.get_by_label("After").select_option(after[:10])
    page.get_by_role("button", name="Compare here").click()
    expect(page.locator(".pair p").first).to_contain_text("compared")
    page.evaluate("document.querySelectorAll('.pair details').forEach(fold => fold.open = true)")
    return page


# Name, before, after, change, interval, verdict.
Row = tuple[str, ...]


def rows_on(page: Page) -> set[Row]:
    rows: list[list[str]] = page.locator(".pair tbody tr").evaluate_all(
        """rows => rows.map(row => [row.querySelector('th small').innerText,
            ...[...row.querySelectorAll('td')].map(cell => cell.innerText)])"""
    )
    return {
        (
            name.partition(",")[0],
            *(text.split("\n")[0] for text in told),
            judged.split("\n")[0].split()[-1],
        )
        for name, *told, judged in rows
    }


def rows_of_terminal(history: ChangeHistory, pair: tuple[int, int]) -> set[Row]:
    comparison = compare_imported_commits("p", *shas(pair), history)
    told = zip(comparison.series, compare_table(comparison).rows, strict=True)
    return {
        (
            row.cell,
            both.before.value if row.before is not None else "–",
            both.after.value if row.after is not None else "–",
            row.ratio_text or "–",
            compared_bounds(row.comparison) or "–",
            judged.word.word.split()[-1],
        )
        for row, (_, both, _, _, judged, _) in told
        if isinstance(both, Pair) and isinstance(judged, Marked)
    }


@pytest.mark.parametrize("pair", PAIRS)
def test_the_browser_says_of_two_commits_what_the_terminal_does(
    windows: Windows, compare_html: Path, history: ChangeHistory, pair: tuple[int, int]
) -> None:
    page = compared_here(windows, compare_html, pair)

    assert rows_on(page) == rows_of_terminal(history, pair)


def test_pairs_are_of_every_verdict(history: ChangeHistory) -> None:
    verdicts = {row[-1] for pair in PAIRS for row in rows_of_terminal(history, pair)}

    assert verdicts >= {"faster", "slower", "equivalent", "inconclusive", "less", "more"}


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_a_comparison_in_the_browser_fits_and_has_no_axe_violation(
    windows: Windows, compare_html: Path, width: int
) -> None:
    page = compared_here(windows, compare_html, PAIRS[1], width)

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == ""


def test_of_two_runs_without_a_page_their_values_are_shown_with_the_command(
    windows: Windows, tmp_path: Path
) -> None:
    host = a_machine()
    scenario = a_scenario()
    records = [
        (a_run(run_id=f"r{day}", started_at=f"2026-03-{day:02}T08:00:00Z", host=host), ())
        for day in range(1, 8)
    ]
    points = HistoryPoints.of(
        a_point(1e6 * day, day=day, run=f"r{day}", bounds=(0.9e6 * day, 1.1e6 * day))
        for day in range(1, 8)
    )
    series = replace(
        a_series([]), host=host.id, scenario=scenario.name, cell="binding=none", points=points
    )
    site.write(SiteInputs(records=records, now=NOW, series=[series]), tmp_path)
    page = windows.open(tmp_path / "compare.html")

    page.get_by_label("Before").select_option("r1")
    page.get_by_label("After").select_option("r7")
    expect(page.locator(".choice .command")).to_have_text("corebound compare r1 r7")
    page.get_by_role("button", name="Compare here").click()

    row = page.locator(".pair tbody tr")
    expect(row).to_contain_text("1.00 ms")
    expect(row).to_contain_text("6.30 ms–7.70 ms")
