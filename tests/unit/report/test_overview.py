"""The overview: the largest effect, what to set, and a row for each scenario."""

import random
import re
from pathlib import Path

from msgspec.structs import replace

from corebound.analysis.change_history import build_change_history
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import latest_results
from corebound.analysis.wording import plain
from corebound.errors import Fault
from corebound.present.tune import headline, races
from corebound.records import jsonl
from corebound.report import site
from corebound.report.elements import Page
from corebound.report.inputs import PageContext, SiteInputs
from corebound.report.pages.overview import overview_page
from corebound.report.scenario.page import scenario_page
from corebound.scenario.matrix import expand
from support.build import a_launch, a_run, a_scenario, a_series, timed
from support.report_sample import NOW, pages_of
from support.results import a_result
from support.texts import in_order
from support.tuning import a_tuned_scenario, a_tuning

NONE, ONE_CPU = "binding=none", "binding=one-cpu"
LATER = "2026-03-15T08:00:00+00:00"


def measured(
    name: str, *blocks: int, budget_s: float | None = None, run: str = "r1"
) -> ScenarioResult:
    """A scenario of two bindings, so many launches of each; none: the run did not come to it."""
    scenario = a_scenario(name=name)
    launches = [
        timed(10.0, cell=cell, block=block)
        for cell, number in zip(expand(scenario, "s.yaml"), blocks, strict=False)
        for block in range(number)
    ]
    made = replace(a_run(scenarios=(scenario,)), id=run, budget_s=budget_s)
    return latest_results([(made, launches)])[0]


def page_of(*results: ScenarioResult, faults: tuple[Fault, ...] = ()) -> Page:
    return overview_page(results, PageContext(now=NOW), faults=faults)


def flags_of(page: Page) -> dict[str, str]:
    return {flag.title: flag.detail for flag in page.hero.flags}


def test_the_headline_is_the_largest_effect_with_its_interval_and_what_to_set() -> None:
    threads = a_scenario(
        title="Training", matrix={"workers": [4], "binding": ["none"], "threads": ["default", 1]}
    )
    keys = [f"workers=4,binding=none,threads={threads}" for threads in ("default", 1)]
    page = page_of(a_result(threads, dict(zip(keys, (1240.0, 234.0), strict=True))))

    assert in_order(page.hero.says, "Training: ", "1 thread", " 5.", "× faster", "default")
    assert re.match(r"95 % CI 5\.\d\d–5\.\d\d, 8", plain(page.hero.support))
    assert page.action is not None
    assert (page.action.prompt, page.action.line.line) == ("Set", "OMP_NUM_THREADS=1")
    assert in_order(page.action.where, "4 commands")
    assert page.bars is not None
    assert [(name, tone) for name, _, tone in page.bars.quantities] == [
        ("The default", "plain"),
        ("Running with 1 thread", "good"),
    ]


def test_a_slowdown_is_a_headline_too_and_keeping_the_default_its_advice() -> None:
    page = page_of(a_result(a_scenario(title="Hashing"), {NONE: 10.0, ONE_CPU: 20.8}))

    assert in_order(page.hero.says, "Hashing: ", "one CPU", " 2.", "× slower", "default")
    assert in_order(plain(page.hero.support), "Keep the default", "one CPU")
    assert page.action is None
    (row,) = page.rows
    assert (row.verdict.word, row.second, row.because) == ("slower", "", "")


def test_a_scenario_without_a_result_keeps_the_headline_from_judging_all() -> None:
    equal = a_result(a_scenario(name="a"), {NONE: 10.0, ONE_CPU: 10.0}, spread=0.002)
    page = page_of(equal, a_result(a_scenario(name="b"), {}))

    assert in_order(plain(page.hero.verdict), "Keep the default", "until more")
    assert in_order(plain(page.hero.support), "One scenario", "more launches")
    (missing,) = (row for row in page.rows if row.shown is None)
    assert missing.same == ""


def test_among_several_scenarios_the_largest_difference_seen_has_its_scenario() -> None:
    page = page_of(
        a_result(a_scenario(name="a", title="Small"), {NONE: 10.0, ONE_CPU: 8.0}, blocks=1),
        a_result(a_scenario(name="b", title="Large"), {NONE: 10.0, ONE_CPU: 2.0}, blocks=1),
    )

    assert in_order(page.hero.says, "Large: ", "one CPU", "looks", "× faster", "default")
    assert plain(page.hero.support) == "One launch each."
    # The row of that scenario has the same effect, and says why it is not decided.
    row = next(row for row in page.rows if row.advice.result.scenario.title == "Large")
    assert (row.verdict.word, row.because) == ("inconclusive", "One launch each")
    assert page.bars is not None
    assert "Each launch's median" in page.bars.legend
    # The command measures that scenario, not the first.
    assert page.action is not None
    assert in_order(page.action.prompt, "Confirm", "6 launches", "about ")
    assert page.action.line.line.startswith("corebound run scenarios/b.yaml")


def test_a_run_that_ended_early_without_a_result_is_resumed() -> None:
    page = page_of(measured("one", 1, 1), measured("two", 1))

    assert page.action is not None
    assert page.action.line.line == "corebound run --resume"


def test_an_effect_without_an_interval_is_drawn_and_its_size_so_far_told() -> None:
    scenario = a_scenario()
    launches = tuple(
        timed(ms, cell=cell) for cell, ms in zip(expand(scenario, "s.yaml"), (10, 5), strict=False)
    )
    html = pages_of([(a_run(scenarios=(scenario,)), launches)])["index.html"]

    assert 'class="est plain"' in html
    assert "2.00× faster so far" in html


def test_where_nothing_could_be_compared_a_value_is_told_and_what_to_run() -> None:
    # One has a launch of its baseline only, the other none at all.
    page = page_of(measured("one", 1), measured("two"))

    assert in_order(page.hero.says, "A scenario: ", "10.0 ms")
    assert page.action is not None
    assert page.action.line.line == "corebound run scenarios/one.yaml"


def test_the_largest_effect_stands_first_and_what_is_not_measured_last() -> None:
    small, large = (
        a_result(a_scenario(name=name), {NONE: 10.0, ONE_CPU: ms})
        for name, ms in (("small", 12.0), ("large", 20.0))
    )
    page = page_of(a_result(a_scenario(name="a"), {}), small, large)

    assert [row.advice.result.scenario.name for row in page.rows] == ["large", "small", "a"]


def test_without_a_valid_launch_a_discarded_one_says_why_not_one_that_cannot_run_here() -> None:
    first, second = (a_scenario(name=name) for name in ("one", "two"))
    run = a_run(scenarios=(first, second))
    cells = [expand(scenario, "s.yaml")[0] for scenario in (first, second)]
    launches = [
        replace(a_launch(cell=cells[0], status="skipped"), reason="no core has two CPUs."),
        replace(a_launch(cell=cells[1], status="invalid"), reason="others used its CPUs."),
    ]

    page = page_of(*latest_results([(run, launches)]))

    assert "No launch counts" in plain(page.hero.verdict)
    assert in_order(plain(page.hero.support), "others used its CPUs")


def test_a_history_without_changes_does_not_hide_the_largest_effect() -> None:
    result = a_result(a_scenario(title="Hashing"), {NONE: 10.0, ONE_CPU: 20.8})
    steady = a_series([1e6 + day % 3 for day in range(40)], scenario="a-scenario")
    context = PageContext(now=NOW, history=build_change_history([steady]))

    page = overview_page([result], context)

    assert in_order(page.hero.says, "Hashing: ", "one CPU", " 2.")
    assert "New: last 30 runs" in plain(page.hero.support)


def test_a_history_that_is_too_short_adds_one_sentence() -> None:
    result = a_result(a_scenario(title="Hashing"), {NONE: 10.0, ONE_CPU: 20.8})
    short = a_series([1e6, 1.1e6], scenario="a-scenario")
    context = PageContext(now=NOW, history=build_change_history([short]))

    support = plain(overview_page([result], context).hero.support)

    assert "too few values" in support
    assert "New: last 30 runs" not in support


def test_a_change_is_the_headline_with_the_command_that_measures_it_again() -> None:
    noise = random.Random(1)
    values = [1e6 * (1.5 if day >= 30 else 1.0) * noise.gauss(1, 0.005) for day in range(40)]
    stepped = replace(a_series(values), reproduce=("corebound", "run", "s.yaml"))
    context = PageContext(now=NOW, history=build_change_history([stepped]))

    page = overview_page([a_result(a_scenario(), {NONE: 10.0, ONE_CPU: 20.8})], context)

    assert plain(page.hero.verdict) == "1 series got slower."
    assert page.action is not None
    assert (page.action.prompt, page.action.line.line) == ("Reproduce", "corebound run s.yaml")


def test_a_run_that_ended_early_is_told_with_what_goes_on_with_it() -> None:
    flags = flags_of(page_of(measured("one", 1), measured("two", 40, 40)))

    assert in_order(flags["The run ended early"], "1 of 2 scenarios", "corebound run --resume")


def test_a_run_that_others_came_after_is_not_gone_on_with() -> None:
    later = measured("two", 40, 40, run="r2")
    later = replace(later, run=replace(later.run, started_at=LATER))

    flags = flags_of(page_of(measured("one", 1), later))

    assert flags["The run ended early"].endswith("1 of 2 scenarios")


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


def test_a_race_overrides_the_advice_of_its_scenario_on_every_page_and_says_so() -> None:
    tuned, _ = a_tuning()
    slower = {"binding=none,threads=default": 20.0, "binding=none,threads=1": 10.0}
    run = replace(a_run(scenarios=(a_tuned_scenario(),)), host=tuned.run.host)
    result = a_result(a_tuned_scenario(), slower, run=run)
    context = PageContext(now=NOW, races=races([tuned]))

    overview = overview_page([result], context)
    page = scenario_page(result, context, findings=(), records_file="r.jsonl")
    alone = overview_page([result], PageContext(now=NOW))

    (row,) = overview.rows
    assert row.advice.says == page.advice
    assert row.advice.says.startswith(headline(tuned, bounds=False))
    assert "overrides" in row.advice.says
    assert (overview.action, page.action, row.advice.set) == (None, None, None)
    assert alone.rows[0].advice.says not in page.advice
    assert headline(tuned, bounds=False) in plain(overview.hero.verdict)


def test_a_race_on_another_host_says_nothing_about_this_one() -> None:
    tuned, _ = a_tuning()
    elsewhere = replace(tuned, run=replace(tuned.run, host=replace(tuned.run.host, id="other")))
    result = a_result(a_tuned_scenario(), {"binding=none,threads=default": 20.0})

    (row,) = overview_page([result], PageContext(now=NOW, races=races([elsewhere]))).rows

    assert row.advice.race is None
