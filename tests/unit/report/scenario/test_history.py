"""The lead of a scenario's history describes the charted cells."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.analysis.change_history import build_change_history
from corebound.analysis.scenario_result import analyse_scenario
from corebound.present.sections import Marked
from corebound.records.decisions import Decision
from corebound.records.history import Series
from corebound.report import site
from corebound.report.elements import Content
from corebound.report.inputs import SiteInputs
from corebound.report.scenario.history import scenario_history
from corebound.scenario.matrix import expand
from support.build import a_placement, a_run, a_scenario, a_series, timed_blocks
from support.series import accepted

MODES = ("none", "one-cpu", "physical-cores", "logical-cpus", "node")
SCENARIO = a_scenario(matrix={"binding": list(MODES)}, baseline={"binding": "none"})
RUN = a_run(scenarios=(SCENARIO,))
# The best cell here, so that it and the baseline are drawn.
TIMES_MS = dict(zip(MODES, (12.0, 10.0, 14.0, 15.0, 16.0), strict=True))


def history_of(**ratios: float) -> Content:
    """Sixty nights of each cell; the last fifteen took so many times as long."""
    return history_in([_nights(mode, ratios.get(mode.replace("-", "_"), 1.0)) for mode in MODES])


def history_in(all_series: Sequence[Series], decisions: Sequence[Decision] = ()) -> Content:
    launches = [
        launch
        for cell in expand(SCENARIO, "s.yaml")
        for launch in timed_blocks(
            cell, TIMES_MS[cell.binding.mode], placement=a_placement(cpus=(0,), bound=False)
        )
    ]
    result = analyse_scenario(RUN, RUN.scenarios[0], launches)
    page = scenario_history(
        result, build_change_history(all_series, (result,), decisions=decisions)
    )
    assert page is not None
    return page


@pytest.mark.parametrize("ratio", [1.0, 1.1])
def test_a_page_has_the_history_of_memory_if_that_changed(tmp_path: Path, ratio: float) -> None:
    launches = [
        launch
        for cell in expand(SCENARIO, "s.yaml")
        for launch in timed_blocks(
            cell, TIMES_MS[cell.binding.mode], placement=a_placement(cpus=(0,), bound=False)
        )
    ]
    memory = replace(_nights("none", ratio), metric="peak memory", unit="MiB")

    site.write(
        SiteInputs(
            records=[(RUN, tuple(launches))],
            now="2026-03-01T00:00:00Z",
            series=[_nights("none", 1.0)],
            memory=[memory],
        ),
        tmp_path,
    )

    page = (tmp_path / "scenario" / f"{SCENARIO.name}.html").read_text()
    assert ('id="memory"' in page) is (ratio > 1)
    assert 'id="history"' in page
    csv = (tmp_path / "data" / f"{SCENARIO.name}.history.csv").read_text()
    assert (",MiB," in csv) is (ratio > 1)


def _nights(mode: str, ratio: float, *, until: int = 60) -> Series:
    noise = random.Random(7)  # no secret
    return a_series(
        [1e6 * (ratio if day >= 45 else 1.0) * noise.gauss(1, 0.002) for day in range(until)],
        host=RUN.host.id,
        host_name=RUN.host.name,
        scenario=SCENARIO.name,
        cell=f"binding={mode}",
        project=None,
    )


def test_the_lead_describes_charted_cells_not_a_larger_change_elsewhere() -> None:
    page = history_of(none=1.1, node=1.5)

    assert len(page.panel.labels) == 2
    assert page.lead.startswith("1.10×")
    change = page.panel.changes.rows[0][1]
    assert isinstance(change, Marked)
    assert change.word.word in page.lead


def test_other_cells_are_counted_by_direction() -> None:
    lead = history_of(none=1.1, node=1.5, physical_cores=0.9, logical_cpus=0.8).lead

    assert lead.endswith("; of the other configurations 1 is slower and 2 are faster.")


def test_the_lead_separates_charted_regressions_and_improvements() -> None:
    lead = history_of(none=1.1, one_cpu=0.9).lead

    assert "× slower since " in lead
    assert " and " in lead
    assert "× faster since " in lead


def test_charted_changes_of_one_direction_are_one_range() -> None:
    lead = history_of(none=1.1, one_cpu=1.3).lead

    assert " to " in lead
    assert lead.count("slower") == 1


def test_the_lead_says_if_only_other_cells_changed() -> None:
    assert history_of(node=1.5).lead == (
        "No change in the configurations shown; of the other configurations 1 is slower."
    )


def test_without_a_change_the_lead_counts_runs() -> None:
    assert history_of().lead == "No change in 60 runs."


def test_the_lead_of_a_short_history_says_that_it_is_too_short() -> None:
    all_series = [
        replace(series, points=series.points[:4])
        for series in (_nights(mode, 1.0) for mode in MODES)
    ]

    assert history_in(all_series).lead == "Too little data in 4 runs."


def test_an_accepted_change_is_not_new() -> None:
    all_series = [_nights(mode, 1.1 if mode == "none" else 1.0) for mode in MODES]
    (change,) = build_change_history(all_series).changes

    assert " slower since " in history_in(all_series).lead
    assert history_in(all_series, [accepted(change)]).lead == "No change in 60 runs."


def test_a_change_in_a_retired_series_is_not_new() -> None:
    all_series = [_nights(mode, 1.0, until=100) for mode in MODES if mode != "node"]
    series = _nights("node", 1.5)

    page = history_in([*all_series, series])

    assert any(change for *_, change in page.folded)
    assert page.lead == "No change in 100 runs."
