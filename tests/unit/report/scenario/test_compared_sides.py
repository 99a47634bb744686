"""The page of a comparison of two commits, or of two values of a setting."""

import itertools
import re
import shlex
from html import unescape
from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.analysis.change_history import build_change_history
from corebound.analysis.launch_counts import launch_counts
from corebound.analysis.scenario_result import ScenarioResult, analyse_scenario
from corebound.analysis.suggested_commands import cell_command, reproduce_command
from corebound.analysis.wording import plain
from corebound.records.history import Series
from corebound.report.elements import Content
from corebound.report.inputs import PageContext
from corebound.report.pages.compare import comparisons_page
from corebound.report.pages.overview import overview_page
from corebound.report.scenario.page import scenario_page
from corebound.scenario.compared_axis import SIDES_SUFFIX, with_compared_axis, with_compared_commits
from corebound.scenario.loader import load_document
from corebound.scenario.matrix import expand
from corebound.scenario.select import select
from support.build import a_run, a_scenario, a_series
from support.commit_sample import BASE, FILE, HEAD, OUTSIDE, a_file, compared, disturbed
from support.report_sample import NOW, page_of, rendered
from support.results import a_result
from support.series import EPYC, XEON, anchored_nights


def commands_of(result: ScenarioResult) -> set[str]:
    """Every command on the page of a scenario."""
    html = unescape(rendered("scenario", page_of(result)))
    return set(re.findall(r"corebound [a-z][^<\"]+", html))


@pytest.mark.parametrize(
    ("ms", "word"), [(16.0, "1.60× slower"), (5.0, "2.00× faster"), (10.0, "as fast as")]
)
def test_the_headline_is_the_verdict_between_the_commits(ms: float, word: str) -> None:
    verdict = plain(page_of(compared({BASE: 10.0, HEAD: ms}, spread=0.001)).hero.verdict)

    assert verdict.startswith(HEAD)
    assert word in verdict
    assert verdict.endswith(f"{BASE}.") or "within" in verdict


def test_a_difference_that_is_not_decided_is_not_stated_as_one() -> None:
    verdict = plain(page_of(compared({BASE: 10.0, HEAD: 16.0}, spread=0.9)).hero.verdict)

    assert verdict.startswith(f"{HEAD} looks ")
    assert verdict.endswith(f"slower than {BASE}: not decided yet.")


def test_an_open_difference_says_how_many_launches_were_disturbed() -> None:
    result = disturbed(compared({BASE: 10.0, HEAD: 16.0}, spread=0.9), 36)
    made = launch_counts(result.launches).counted + 36

    verdict = plain(page_of(result).hero.verdict)

    assert verdict.endswith(f"slower than {BASE}; 36 of {made} launches were disturbed.")
    assert verdict not in page_of(result).action.prompt


def test_each_pair_is_shown_and_what_was_left_out_with_its_reason() -> None:
    result = compared({BASE: 10.0, HEAD: 16.0})
    lost = replace(result.launches[-1], id="lost", block=99, status="invalid", disturbance=OUTSIDE)

    page = page_of(analyse_scenario(result.run, result.source, (*result.launches, lost)))

    assert page.sides.names == (BASE, HEAD)
    (figure,) = page.sides.figures
    *pairs, left_out = figure.rows
    assert all(pair.outcome.endswith("slower") for pair in pairs)
    assert (left_out.block, left_out.outcome) == (100, "disturbed by other programs")
    assert figure.caption == f"{len(pairs)} pairs of launches; 1 left out"
    assert figure.command.line.startswith(f"corebound compare-commits {BASE} {HEAD} ")


def test_what_was_left_out_and_why_is_at_the_top() -> None:
    result = disturbed(compared({BASE: 10.0, HEAD: 16.0}), 36)
    counts = launch_counts(result.launches)

    support = plain(page_of(result).hero.support)

    assert counts.total_discarded == 36
    assert f"36 of {36 + counts.counted} launches discarded: disturbed by other programs" in support


def test_its_commands_compare_the_commits_again_and_select_cells_of_the_file() -> None:
    scenario = a_file(matrix={"binding": ["none", "one-cpu"], "threads": [1, 2]})
    result = compared({BASE: 10.0, HEAD: 16.0}, scenario)
    in_file = expand(scenario, FILE)

    commands = commands_of(result)

    assert any(line.startswith("corebound compare-commits") for line in commands)
    for line in commands:
        words = shlex.split(line)
        assert words[1] in {"compare-commits", "reproduce", "plan"}
        assert "--launches" not in words
        chosen = [after for word, after in itertools.pairwise(words) if word == "--only"]
        assert not chosen or select(in_file, chosen)
        if words[1] == "compare-commits":
            assert {BASE, HEAD} <= set(words) or line.startswith(
                "corebound compare-commits main HEAD"
            )


def test_a_comparison_of_settings_has_the_command_that_names_both_values() -> None:
    both = with_compared_axis(
        a_scenario(parameters={"size": 1}, matrix={"binding": ["none", "one-cpu"]}),
        ("parameters", "size"),
        (64, 128),
        FILE,
        suffix=SIDES_SUFFIX,
    )
    times = {cell.key: 10.0 + index for index, cell in enumerate(expand(both, FILE))}

    page = page_of(a_result(both, times))

    command = cell_command(page.result, page.configurations.rows[-1].cell).line
    assert "compare-commits parameters.size=64 parameters.size=128" in command
    assert "size=" not in command.partition("--only")[2]


def test_it_has_neither_a_history_nor_a_second_headline() -> None:
    page = page_of(disturbed(compared({BASE: 10.0, HEAD: 30.0}), 3))

    assert page.history is None
    assert not any(word in flag.title for flag in page.hero.flags for word in ("slower", "disc"))


def test_the_comparisons_lead_to_its_page() -> None:
    result = compared({BASE: 10.0, HEAD: 16.0})

    (row,) = comparisons_page([], [], (), hosts=1, interleaved=[result]).rows

    assert [choice.value for choice in row[1:3]] == [BASE, HEAD]
    assert row[3] == f"scenario/{result.scenario.name}.html"


def test_a_search_over_many_commits_names_its_own_command() -> None:
    commits = [f"{at:010x}" for at in range(3)]
    both = with_compared_commits(a_file(), commits, FILE)
    run = replace(a_run(scenarios=(both,)), argv=("corebound", "bisect", "v1", "v2"))
    result = a_result(both, {cell.key: 10.0 for cell in expand(both, FILE)}, run=run)

    page = page_of(result)

    assert reproduce_command(page.result, ()).line == "corebound bisect v1 v2"
    # One commit of it can be compared with the first.
    assert (
        f"{commits[0]} {commits[2]}"
        in cell_command(page.result, page.configurations.rows[-1].cell).line
    )


def test_the_overview_gives_no_advice_to_set_a_commit() -> None:
    result = compared({BASE: 10.0, HEAD: 16.0})

    (row,) = overview_page([result], PageContext(now=NOW)).rows

    assert HEAD in row.advice.says
    assert "slower" in row.advice.says
    assert not row.command or "--only commit" not in row.command.line


@pytest.mark.parametrize(
    ("head_ms", "spread"), [(16.0, 0.9), (10.0, 0.001), (10.1, 0.02), (16.0, 0.01)]
)
def test_the_overview_of_a_comparison_alone_has_its_verdict_as_headline(
    head_ms: float, spread: float
) -> None:
    result = compared({BASE: 10.0, HEAD: head_ms}, spread=spread)

    verdict = plain(overview_page([result], PageContext(now=NOW)).hero.verdict)

    assert HEAD in verdict
    assert BASE in verdict


def test_a_page_of_a_scenario_of_its_own_is_no_comparison() -> None:
    scenario = load_document(a_scenario().document(), "s.yaml")

    page = page_of(a_result(scenario, {"binding=none": 10.0, "binding=one-cpu": 20.0}))

    assert page.sides is None
    assert reproduce_command(page.result, ()).line.startswith("corebound run")
    assert Path(FILE).name not in reproduce_command(page.result, ()).line


def test_the_page_of_commits_has_the_history_of_ratios_to_an_anchor_and_no_other() -> None:
    result = compared({BASE: 10.0, HEAD: 11.0})
    name = result.scenario.name
    anchored = replace(anchored_nights({EPYC: 1.1, XEON: 1.1}), scenario=name)
    absolute = a_series([1e6, 1e6, 1e6], scenario=name, host=result.run.host.id)

    def history_with(*series: Series) -> Content | None:
        context = PageContext(now=NOW, history=build_change_history(series, (result,)))
        page = scenario_page(result, context, findings=(), records_file="r.jsonl")
        history: Content | None = page.history
        return history

    assert history_with(absolute) is None
    shown = history_with(absolute, anchored)
    assert shown is not None
    assert [*shown.panel.all_series] == [anchored]
    assert shown.folded == ()
