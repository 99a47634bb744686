"""Specifies what is said of launches of two modes."""

import pytest
from msgspec.structs import replace

from corebound.analysis.launch_modes import mode_notes, mode_text, modes_by_launch
from corebound.analysis.scenario_result import ScenarioResult, analyse_scenario
from support.known import known
from support.report_sample import TWO_MODES, a_sample_of_two_modes
from support.texts import in_order


@pytest.fixture(scope="module")
def result() -> ScenarioResult:
    run, launches = a_sample_of_two_modes()
    return analyse_scenario(run, run.scenarios[0], launches)


def test_every_launch_has_its_mode(result: ScenarioResult) -> None:
    modes = modes_by_launch(result)

    letters = [
        "".join(modes[f"{block}-{position}"][0].upper() for position in (0, 1))
        for block in range(len(TWO_MODES.split()))
    ]
    assert " ".join(letters) == TWO_MODES


def test_a_baseline_whose_comparisons_disagree_has_no_mode(result: ScenarioResult) -> None:
    (pair,) = result.ranked
    by_mode = known(pair.comparison.by_mode)
    other = {"fast": "slow", "slow": "fast"}
    first, *others = by_mode.modes.blocks
    disagreeing = replace(
        pair,
        cell=replace(
            pair.cell,
            comparison=replace(
                pair.comparison,
                by_mode=replace(
                    by_mode,
                    modes=replace(
                        by_mode.modes,
                        blocks=(replace(first, baseline=other[known(first.baseline)]), *others),
                    ),
                ),
            ),
        ),
    )

    modes = modes_by_launch(replace(result, ranked=(pair, disagreeing)))

    assert "0-0" not in modes
    assert "1-0" in modes


def test_a_note_has_both_comparisons_and_the_shares(result: ScenarioResult) -> None:
    (note,) = mode_notes(result)

    assert in_order(note, "same mode", "2.9 % slower [", "both modes", "5 of 14", "4 of 14")
    assert note.endswith("no significant difference.")


def test_nothing_is_said_without_modes() -> None:
    assert mode_text(None) == ""
