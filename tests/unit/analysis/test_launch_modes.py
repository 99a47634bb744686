"""Specifies what is said of launches of two modes, and what goes with the mode."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from corebound.analysis.launch_modes import (
    associated_property,
    mode_notes,
    mode_text,
    modes_by_launch,
)
from corebound.analysis.scenario_result import ScenarioResult, analyse_scenario
from corebound.records.launch_record import Launch
from corebound.stats.modes import Mode
from support.build import a_host_over_time, a_launch, a_window, a_worker
from support.report_sample import TWO_MODES, a_sample_of_two_modes


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
    by_mode = pair.comparison.by_mode
    assert by_mode is not None
    other = {"fast": "slow", "slow": "fast"}
    first, *others = by_mode.modes.blocks
    assert first.baseline is not None
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
                        blocks=(replace(first, baseline=other[first.baseline]), *others),
                    ),
                ),
            ),
        ),
    )

    modes = modes_by_launch(replace(result, ranked=(pair, disagreeing)))

    assert "0-0" not in modes
    assert "1-0" in modes


def test_a_note_has_both_comparisons_the_shares_and_what_goes_with_the_mode(
    result: ScenarioResult,
) -> None:
    (note,) = mode_notes(result)

    assert "In the same mode 2.9 % slower [" in note
    assert "over both modes between " in note
    assert "in 5 of 14 against 4 of 14 launches: no significant difference." in note
    assert note.endswith("The mode depends on the launch's peak memory.")


def test_nothing_is_said_without_modes() -> None:
    assert mode_text(None) == ""


def launches_of(
    fast: Callable[[Launch], Launch], slow: Callable[[Launch], Launch]
) -> tuple[list[Launch], dict[str, Mode]]:
    """Eight fast and eight slow launches, each changed so."""
    modes: dict[str, Mode] = {f"{block}-0": "fast" if block % 2 else "slow" for block in range(16)}
    plain = [a_launch(block=block, workers=(a_worker(),)) for block in range(16)]
    return [fast(one) if modes[one.id] == "fast" else slow(one) for one in plain], modes


def with_nodes(*node_bytes: int) -> Callable[[Launch], Launch]:
    def changed(launch: Launch) -> Launch:
        workers = [replace(one, node_bytes=dict(enumerate(node_bytes))) for one in launch.workers]
        return replace(launch, workers=tuple(workers))

    return changed


def with_faults(faults: int) -> Callable[[Launch], Launch]:
    return lambda launch: replace(
        launch, host=a_host_over_time(a_window(minor_faults=faults + launch.block))
    )


@pytest.mark.parametrize(
    ("fast", "slow", "name"),
    [
        (with_nodes(1, 0), with_nodes(0, 1), "share of memory on node 0"),
        (with_faults(100), with_faults(4000), "number of page faults per iteration"),
    ],
)
def test_a_property_that_goes_with_the_mode_is_named(
    fast: Callable[[Launch], Launch], slow: Callable[[Launch], Launch], name: str
) -> None:
    launches, modes = launches_of(fast, slow)

    assert associated_property([launches, []], modes) == f"The mode depends on the launch's {name}."


def test_a_property_that_does_not_go_with_the_mode_is_not_named() -> None:
    launches, modes = launches_of(with_faults(100), with_faults(100))

    assert associated_property([launches, []], modes) == ""


def test_sides_that_differ_are_divided_separately() -> None:
    # The cell has more memory than its baseline, and is slow more often.
    cell, modes = launches_of(with_nodes(1, 0), with_nodes(1, 0))
    baseline = [with_nodes(0, 1)(replace(one, id=f"{one.id}-base")) for one in cell]
    slow_cell: dict[str, Mode] = dict.fromkeys(modes, "slow")
    slow_cell |= {f"{one}-base": "fast" for one in modes}

    assert associated_property([cell, baseline], slow_cell) == ""
