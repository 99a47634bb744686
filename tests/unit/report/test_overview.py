"""The overview counts what was compared, and says what it could not read or come to."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import latest_results
from corebound.analysis.wording import plain
from corebound.errors import Fault
from corebound.records import jsonl
from corebound.report import site
from corebound.report.inputs import PageContext, SiteInputs
from corebound.report.pages.overview import OverviewPage, overview_page
from corebound.scenario.matrix import expand
from support.build import a_launch, a_run, a_scenario, a_worker
from support.report_sample import NOW

LATER = "2026-03-15T08:00:00+00:00"


def measured(
    name: str, *blocks: int, budget_s: float | None = None, run: str = "r1"
) -> ScenarioResult:
    """A scenario of two settings, so many launches of each; none: the run did not come to it."""
    scenario = a_scenario(name=name)
    launches = [
        a_launch(cell=cell, block=block, workers=(a_worker(wall_ns=(10_000_000,) * 30),))
        for cell, number in zip(expand(scenario, "s.yaml"), blocks, strict=False)
        for block in range(number)
    ]
    made = replace(a_run(scenarios=(scenario,)), id=run, budget_s=budget_s)
    return latest_results([(made, launches)])[0]


def page_of(*results: ScenarioResult, faults: tuple[Fault, ...] = ()) -> OverviewPage:
    return overview_page(results, PageContext(now=NOW), faults=faults)


def flags_of(page: OverviewPage) -> dict[str, str]:
    return {flag.title: flag.detail for flag in page.hero.flags}


def test_where_nothing_could_be_compared_nothing_is_said_to_be_slower_or_the_same() -> None:
    # One has a launch of its baseline only, the other none at all.
    page = page_of(measured("one", 1), measured("two"))

    assert plain(page.hero.verdict) == "Nothing could be compared yet."


def test_what_could_not_be_compared_is_counted_apart() -> None:
    page = page_of(measured("one", 6, 6), measured("two", 1))

    assert plain(page.hero.verdict) == (
        "No setting clearly beats its baseline in 1 scenario; 1 could not be compared."
    )


def test_a_run_that_ended_early_is_told_with_what_goes_on_with_it() -> None:
    flags = flags_of(page_of(measured("one", 1), measured("two", 40, 40)))

    assert flags["The run ended early"] == (
        "1 of 2 scenarios cut short; corebound run --resume goes on with it"
    )


def test_a_run_that_others_came_after_is_not_gone_on_with() -> None:
    later = measured("two", 40, 40, run="r2")
    later = replace(later, run=replace(later.run, started_at=LATER))

    flags = flags_of(page_of(measured("one", 1), later))

    assert flags["The run ended early"] == "1 of 2 scenarios cut short"


def test_a_damaged_record_is_told_on_the_overview_and_on_its_runs_page(tmp_path: Path) -> None:
    scenario = a_scenario()
    run = a_run(scenarios=(scenario,))
    other = replace(run, id="r2", started_at=LATER)
    file = jsonl.file_of(run, Path("records")).as_posix()
    fault = Fault(file=file, line=20, what="…", fix="…")

    site.write(SiteInputs(records=[(run, ()), (other, ())], now=NOW, faults=[fault]), tmp_path)

    text = "1 record damaged"
    assert text in (tmp_path / "index.html").read_text()
    assert text in (tmp_path / "run" / "r1.html").read_text()
    assert text not in (tmp_path / "run" / "r2.html").read_text()
