"""A page of a run that ended early says so, and what of it rests on disturbed launches."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from corebound.analysis.scenario_result import ScenarioResult, study
from corebound.analysis.wording import Flag, plain
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.records.telemetry import Disturbance
from corebound.report.scenario.cells import comparison_table
from corebound.report.scenario.launches import launch_rows
from corebound.report.scenario.page import ScenarioPage, scenario_page
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import expand
from support.build import a_launch, a_placement, a_run, a_scenario, a_worker
from support.report_sample import NOW

SCENARIO = a_scenario(
    matrix={
        "environment": ["host", "numpy"],
        "binding": ["none", "one-cpu", "smt-siblings"],
    },
    baseline={"binding": "none"},
    measure={"launches": {"min": 4, "max": 4}},
)
CELLS = {cell.key: cell for cell in expand(SCENARIO, "s.yaml")}
SIBLINGS = tuple(cell for cell in CELLS.values() if cell.binding.mode == "smt-siblings")
FITTING = tuple(cell for cell in CELLS.values() if cell.binding.mode != "smt-siblings")
OUTSIDE = Disturbance(share=1.0, by=("foreign load",), evidence=("all of its iterations",))


def skipped(cell: Cell) -> Launch:
    launch = a_launch(cell=cell, status="skipped", reason="no core of this host has two CPUs.")
    return replace(launch, duration_ns=0)


def launched(cell: Cell, block: int = 0, milliseconds: float = 10.0) -> Launch:
    wall_ns = round(milliseconds * 1e6)
    return a_launch(
        cell=cell,
        block=block,
        placement=a_placement(bound=False),
        workers=(a_worker(wall_ns=(wall_ns,) * 30),),
    )


def studied(
    *launches: Launch, only: tuple[str, ...] = (), budget_s: float | None = None
) -> ScenarioResult:
    run: Run = replace(a_run(scenarios=(SCENARIO,)), only=only, budget_s=budget_s)
    return study(run, run.scenarios[0], launches)


def at(launch: Launch, clock: str, *, lasting_s: float) -> Launch:
    """The launch, begun at this time of one day."""
    return replace(launch, started_at=f"2026-01-02T{clock}Z", duration_ns=round(lasting_s * 1e9))


def page_of(result: ScenarioResult) -> ScenarioPage:
    return scenario_page(result, findings=(), now=NOW, records_file="r.jsonl")


def flag_of(result: ScenarioResult, title: str) -> Flag:
    return next(flag for flag in page_of(result).hero.flags if title in flag.title)


def every_cell(blocks: int) -> tuple[Launch, ...]:
    return (
        *map(skipped, SIBLINGS),
        *(launched(cell, block) for block in range(blocks) for cell in FITTING),
    )


def test_a_run_that_ended_before_any_launch_counts_the_cells_it_never_tried() -> None:
    hero = page_of(studied(*map(skipped, SIBLINGS))).hero

    assert plain(hero.verdict) == "Nothing has been measured yet."
    assert plain(hero.support).startswith(
        "The run ended early: none of 4 cells that fit this host was launched."
    )
    assert "SMT siblings cannot run here: no core of this host has two CPUs." in plain(hero.support)


def test_the_cells_that_are_listed_are_counted_among_all() -> None:
    page = page_of(studied(*map(skipped, SIBLINGS)))

    assert page.cells.lead.startswith("2 of 6 cells; the others were never launched.")


def test_what_is_refused_is_named_by_the_axis_that_is_refused() -> None:
    flag = flag_of(studied(*map(skipped, SIBLINGS)), "skipped")

    assert flag.detail == "this host cannot hold SMT siblings"


def test_what_was_tried_so_far_is_not_said_to_be_what_all_settings_have() -> None:
    hero = page_of(studied(*map(skipped, SIBLINGS))).hero

    assert "SMT siblings" not in hero.context


def test_launches_that_took_no_time_are_not_said_to_have_taken_any() -> None:
    origin = page_of(studied(*map(skipped, SIBLINGS))).provenance

    assert origin.comment == "measures every cell"


def test_a_run_that_ended_early_is_flagged_with_how_many_launches_its_cells_have() -> None:
    flag = flag_of(studied(*every_cell(1)), "ended early")

    assert (flag.tone, flag.title) == ("warn", "The run ended early")
    assert flag.detail == "4 of 4 cells have fewer than the 4 launches asked for"


@pytest.mark.parametrize(
    ("last_at", "lasting_s", "title"),
    [
        # Ten minutes from 02:00:00 on: time is up while this one runs.
        ("02:09:50", 15.0, "The run ended early (--budget\N{NO-BREAK SPACE}10m)"),
        # It was killed after a minute.
        ("02:01:00", 15.0, "The run ended early"),
        # Something went on with it the next morning, and was killed too.
        ("09:00:00", 15.0, "The run ended early"),
    ],
)
def test_a_budget_is_named_where_it_is_what_a_run_ended_by(
    last_at: str, lasting_s: float, title: str
) -> None:
    launches = (
        at(launched(FITTING[0]), "02:00:00", lasting_s=15.0),
        at(launched(FITTING[1]), last_at, lasting_s=lasting_s),
    )

    assert flag_of(studied(*launches, budget_s=600.0), "ended early").title == title
    assert flag_of(studied(*launches), "ended early").title == "The run ended early"


def test_the_time_of_a_run_is_that_of_all_its_scenarios() -> None:
    last = at(a_launch(cell=replace(FITTING[0], scenario="another")), "02:09:50", lasting_s=15.0)
    first = at(launched(FITTING[0]), "02:00:00", lasting_s=15.0)

    result = studied(first, last, budget_s=600.0)

    assert result.incomplete is not None
    assert result.incomplete.budget == "10m"
    assert len(result.launches) == 1


def test_a_flag_counts_the_cells_that_were_never_launched() -> None:
    flag = flag_of(studied(*map(skipped, SIBLINGS), launched(FITTING[0])), "ended early")

    assert flag.title == "The run ended early"
    assert flag.detail == (
        "3 of 4 cells were never launched, 1 has fewer than the 4 launches asked for"
    )


def test_the_environment_tells_launches_asked_for_from_launches_made() -> None:
    facts = {fact.term: fact.value for fact in page_of(studied(*every_cell(1))).provenance.facts}

    assert "4 launches of each cell asked for, the run ended early" in facts["Measured"]


def test_a_run_that_was_carried_out_has_nothing_undone() -> None:
    whole = studied(*every_cell(4))

    assert whole.incomplete is None
    assert not any("early" in flag.title for flag in page_of(whole).hero.flags)


def test_cells_that_a_run_was_not_asked_for_are_not_undone() -> None:
    only = "binding=none"
    chosen = [cell for cell in FITTING if cell.binding.mode == "none"]

    result = studied(
        *(launched(cell, block) for block in range(4) for cell in chosen), only=(only,)
    )

    assert result.incomplete is None
    assert page_of(result).hero.context.startswith("unbound, ")


def test_what_is_asked_of_one_scenario_by_a_value_that_another_has_is_undone() -> None:
    three = [
        a_scenario(name="one", matrix={"threads": [1, 8]}),
        a_scenario(name="two", matrix={"binding": ["none"], "threads": [1, 2]}),
        a_scenario(name="three", matrix={"binding": ["none", "one-cpu"]}),
    ]
    run = replace(a_run(scenarios=tuple(three)), only=("threads!=8",))

    results = [
        study(run, source, [launched(expand(scenario, "s.yaml")[0])])
        for scenario, source in zip(three, run.scenarios, strict=True)
    ]

    assert [result.incomplete and result.incomplete.never for result in results] == [0, 1, 1]
    # Its name leaves out what all that were to be measured have.
    assert results[1].cells[0].cell.hidden_axes == ("binding",)


def test_a_cell_that_was_given_up_after_two_failures_is_not_undone() -> None:
    failing, *cells = FITTING
    launches = [launched(cell, block) for block in range(4) for cell in cells]
    failed = [replace(launched(failing, block), status="failed") for block in range(2)]

    assert studied(*map(skipped, SIBLINGS), *launches, *failed).incomplete is None


def test_launches_that_were_refused_and_never_made_again_leave_a_cell_undone() -> None:
    refused = replace(
        launched(FITTING[0]), status="invalid", disturbance=replace(OUTSIDE, refused=True)
    )
    launches = [launched(cell, block) for block in range(4) for cell in FITTING[1:]]

    found = studied(*map(skipped, SIBLINGS), *launches, refused).incomplete

    assert found is not None
    assert (found.never, found.short, found.of) == (0, 1, 4)


def test_a_disturbed_launch_of_a_cell_with_enough_others_is_left_out_and_flagged() -> None:
    host = tuple(cell for cell in FITTING if cell.environment == "host")
    first, *launches = (launched(cell, block) for block in range(4) for cell in host)

    flag = flag_of(studied(replace(first, disturbance=OUTSIDE), *launches), "disturbed")

    assert (flag.tone, flag.title) == ("warn", "1 disturbed launch left out")
    assert flag.detail == "of 8, by foreign load: unbound, environment host"


def test_values_that_rest_on_disturbed_launches_are_flagged() -> None:
    host = tuple(cell for cell in FITTING if cell.environment == "host")
    first, *launches = (launched(cell, block) for block in range(2) for cell in host)

    flag = flag_of(studied(replace(first, disturbance=OUTSIDE), *launches), "disturbed")

    assert (flag.tone, flag.title) == ("warn", "1 launch in the figures was disturbed")
    assert flag.detail == "of 4, by foreign load for most of its time: unbound, environment host"


def test_rows_say_what_was_disturbed_and_what_was_left_out() -> None:
    calm, fast = (CELLS[f"environment=host,binding={mode}"] for mode in ("none", "one-cpu"))
    launches = [
        *(launched(calm, block, 10.0) for block in range(3)),
        *(replace(launched(fast, block, 8.0), disturbance=OUTSIDE) for block in range(3)),
        replace(launched(calm, 3, 40.0), disturbance=OUTSIDE),
    ]

    table = comparison_table(studied(*launches))

    assert table is not None
    assert {row.cell.cell.binding.mode: row.note for row in table.rows} == {
        "none": "1 disturbed launch left out",
        "one-cpu": "same CPUs and threads as unbound; 3 of 3 launches disturbed",
    }
    medians_ns = [row.cell.summary.median_ns for row in table.rows]
    assert medians_ns == pytest.approx([8e6, 10e6])
    by_id = {row.launch.id: row for row in launch_rows(studied(*launches))}
    assert (
        by_id[launches[-1].id].reason == "Disturbed from outside, and left out of the cell's value."
    )


def test_the_verdict_says_that_it_rests_on_a_disturbed_launch() -> None:
    calm, fast = (CELLS[f"environment=host,binding={mode}"] for mode in ("none", "one-cpu"))
    disturbed = replace(launched(fast, 0, 8.0), disturbance=OUTSIDE)
    launches = [launched(calm, 0, 10.0), disturbed]

    support = plain(page_of(studied(*launches)).hero.support)

    assert "1 of these 2 launches was disturbed from outside." in support
    assert "disturbed from outside" not in plain(
        page_of(studied(launches[0], launched(fast, 0, 8.0))).hero.support
    )
