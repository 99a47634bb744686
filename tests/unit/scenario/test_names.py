"""What cells are called: by what tells them apart, where their keys have every axis."""

from __future__ import annotations

from msgspec.structs import replace

from corebound.analysis.scenario_result import study
from corebound.analysis.wording import full_name
from corebound.report.scenario.page import scenario_page
from corebound.scenario.matrix import expand, shorten_labels
from corebound.scenario.select import select
from support.build import a_launch, a_run, a_scenario

SCENARIO = a_scenario(
    matrix={
        "parameters": {"model": ["small", "large"]},
        "workers": [1, 2],
        "threads": ["default", "per-core"],
    },
    profiles={"quick": {"only": [{"workers": 2, "parameters": {"model": "small"}}]}},
)


def test_a_name_leaves_out_what_a_profile_left_with_one_value() -> None:
    cells = expand(SCENARIO, "s.yaml", "quick")

    assert [full_name(cell) for cell in cells] == ["default threads", "one thread a core"]
    assert [cell.label for cell in cells] == ["default", "per-core"]


def test_keys_stay_as_they_are_without_a_profile() -> None:
    cells = expand(SCENARIO, "s.yaml", "quick")

    assert cells[0].key == "model=small,workers=2,threads=default"
    assert {cell.key for cell in cells} < {cell.key for cell in expand(SCENARIO, "s.yaml")}
    assert set(cells) < set(expand(SCENARIO, "s.yaml"))


def test_what_varies_is_in_every_name() -> None:
    names = {full_name(cell) for cell in expand(SCENARIO, "s.yaml")}

    assert len(names) == 8
    assert "model small, 1 worker, default threads" in names


def test_of_cells_that_were_chosen_names_tell_those_apart() -> None:
    chosen = select(expand(SCENARIO, "s.yaml"), ["threads=default,workers=2"])

    assert [cell.label for cell in shorten_labels(chosen)] == ["small", "large"]


def test_a_cell_alone_is_named_in_full() -> None:
    chosen = select(expand(SCENARIO, "s.yaml"), ["threads=default,workers=2,model=small"])

    assert [cell.label for cell in shorten_labels(chosen)] == ["small, 2, default"]


def test_a_page_says_once_what_all_its_settings_have() -> None:
    run = replace(a_run(scenarios=(SCENARIO,)), profile="quick")
    # As records of a corebound that named cells in full have them.
    cells = [replace(cell, hidden_axes=()) for cell in expand(SCENARIO, "s.yaml", "quick")]
    launches = [a_launch(cell=cell, position=place) for place, cell in enumerate(cells)]

    known = study(run, run.scenarios[0], launches)
    page = scenario_page(
        known, findings=(), now="2026-03-14T09:26:53+00:00", records_file="r.jsonl"
    )

    assert [full_name(one.cell) for one in known.cells] == ["default threads", "one thread a core"]
    assert page.hero.context.startswith("model small, 2 workers, on ")
