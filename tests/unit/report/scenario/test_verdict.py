"""Incomplete runs, disturbed launches and the noise floor in a page's verdict and notices."""

from typing import Any

import pytest
from msgspec.structs import replace

from corebound.analysis.fairness import Check
from corebound.analysis.noise_floor import calibration_for, noise_floor_note
from corebound.analysis.scenario_result import ScenarioResult, analyse_scenario
from corebound.analysis.wording import Flag, plain
from corebound.records.calibration import Calibration
from corebound.records.launch_record import Launch
from corebound.records.run_record import EnvironmentLock, Run
from corebound.records.telemetry import Disturbance
from corebound.report.scenario.configurations import configurations
from corebound.report.scenario.launches import launch_rows
from corebound.report.scenario.provenance import command_comment
from corebound.report.scenario.verdict import flags, hero
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import expand
from corebound.stats.noise_floor import calibrated, lock_digest
from support import build
from support.build import a_launch, a_placement, a_run, a_scenario, a_worker, timed
from support.report_sample import page_of

SCENARIO = a_scenario(
    matrix={"environment": ["host", "numpy"], "binding": ["none", "one-cpu", "smt-siblings"]},
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
    return timed(milliseconds, cell=cell, block=block, placement=a_placement(bound=False))


def studied(*launches: Launch, **of_the_run: Any) -> ScenarioResult:
    run: Run = replace(a_run(scenarios=(SCENARIO,)), **of_the_run)
    return analyse_scenario(run, run.scenarios[0], launches)


def at(launch: Launch, clock: str, *, lasting_s: float) -> Launch:
    """The launch, begun at this time of one day."""
    return replace(launch, started_at=f"2026-01-02T{clock}Z", duration_ns=round(lasting_s * 1e9))


def flag_of(result: ScenarioResult, title: str) -> Flag:
    return next(flag for flag in page_of(result).hero.flags if title in flag.title)


def every_cell(blocks: int) -> tuple[Launch, ...]:
    return (
        *map(skipped, SIBLINGS),
        *(launched(cell, block) for block in range(blocks) for cell in FITTING),
    )


def test_a_run_without_launches_counts_the_cells_it_never_launched() -> None:
    hero = page_of(studied(*map(skipped, SIBLINGS))).hero

    assert plain(hero.verdict) == "Nothing has been measured yet."
    assert plain(hero.support).startswith(
        "The run ended early: none of 4 configurations that fit this host was launched."
    )
    assert "SMT siblings cannot run here: no core of this host has two CPUs." in plain(hero.support)


def test_launches_that_were_all_disturbed_may_be_valid_another_time() -> None:
    reason = "the launch was disturbed from outside."
    disturbed = [replace(launched(cell), status="invalid", reason=reason) for cell in FITTING]

    shown = page_of(studied(*disturbed, *map(skipped, SIBLINGS))).hero

    assert plain(shown.verdict) == "No launch is valid yet."
    assert reason in plain(shown.support)


def test_the_lead_counts_the_listed_cells_of_all_cells() -> None:
    page = page_of(studied(*map(skipped, SIBLINGS)))

    assert page.configurations.lead == "2 of 6 configurations; 4 were not launched."


def test_skipped_cells_are_named_by_the_unsupported_value() -> None:
    flag = flag_of(studied(*map(skipped, SIBLINGS)), "skipped")

    assert flag.detail == "not available on this host: SMT siblings"


def test_values_of_launched_cells_are_not_taken_for_values_of_all() -> None:
    hero = page_of(studied(*map(skipped, SIBLINGS))).hero

    assert "SMT siblings" not in hero.context


def test_launches_without_duration_have_no_duration_in_the_comment() -> None:
    result = studied(*map(skipped, SIBLINGS))

    assert command_comment(result) == "measures every configuration"


def test_a_run_that_ended_early_is_flagged_with_its_launch_counts() -> None:
    flag = flag_of(studied(*every_cell(1)), "ended early")

    assert (flag.tone, flag.title) == ("warn", "The run ended early")
    assert flag.detail == "4 of 4 configurations have fewer than the 4 requested launches"


@pytest.mark.parametrize("option", [("--launches", "2"), ("--launches=2",)])
def test_a_run_with_all_launches_that_it_was_asked_for_did_not_end_early(
    option: tuple[str, ...],
) -> None:
    asked = studied(*every_cell(2), argv=("corebound", "run", "s.yaml", *option))

    assert not any("early" in flag.title for flag in page_of(asked).hero.flags)


@pytest.mark.parametrize(
    ("last_at", "lasting_s", "title"),
    [
        # Ten minutes from 02:00:00 on: time is up while this one runs.
        ("02:09:50", 15.0, "The run ended early (--budget\N{NO-BREAK SPACE}10m)"),
        # There is no time for another one.
        ("02:09:30", 17.0, "The run ended early (--budget\N{NO-BREAK SPACE}10m)"),
        # It was killed after a minute.
        ("02:01:00", 15.0, "The run ended early"),
        # Something went on with it the next morning, and was killed too.
        ("09:00:00", 15.0, "The run ended early"),
    ],
)
def test_the_budget_is_named_if_it_ended_the_run(
    last_at: str, lasting_s: float, title: str
) -> None:
    launches = (
        at(launched(FITTING[0]), "02:00:00", lasting_s=15.0),
        at(launched(FITTING[1]), last_at, lasting_s=lasting_s),
    )

    run = {"budget_s": 600.0, "started_at": launches[0].started_at}

    assert flag_of(studied(*launches, **run), "ended early").title == title
    assert flag_of(studied(*launches), "ended early").title == "The run ended early"


def test_the_budget_covers_all_scenarios_of_a_run() -> None:
    last = at(a_launch(cell=replace(FITTING[0], scenario="another")), "02:09:50", lasting_s=15.0)
    first = at(launched(FITTING[0]), "02:00:00", lasting_s=15.0)

    result = studied(first, last, budget_s=600.0, started_at=first.started_at)

    assert result.incomplete is not None
    assert result.incomplete.budget == "10m"
    assert len(result.launches) == 1


def test_a_flag_counts_the_cells_that_were_never_launched() -> None:
    flag = flag_of(studied(*map(skipped, SIBLINGS), launched(FITTING[0])), "ended early")

    assert flag.title == "The run ended early"
    assert flag.detail == (
        "3 of 4 configurations were never launched, 1 has fewer than the 4 requested launches"
    )


def test_the_environment_distinguishes_requested_from_completed_launches() -> None:
    facts = {fact.term: fact.value for fact in page_of(studied(*every_cell(1))).facts}

    assert "4 launches of each configuration requested, the run ended early" in facts["Measured"]


def test_a_complete_run_has_nothing_incomplete() -> None:
    whole = studied(*every_cell(4))

    assert whole.incomplete is None
    assert not any("early" in flag.title for flag in page_of(whole).hero.flags)


def test_cells_outside_the_selection_are_not_incomplete() -> None:
    only = "binding=none"
    chosen = [cell for cell in FITTING if cell.binding.mode == "none"]

    result = studied(
        *(launched(cell, block) for block in range(4) for cell in chosen), only=(only,)
    )

    assert result.incomplete is None
    assert page_of(result).hero.context.startswith("unbound, ")


def test_a_cell_selected_by_a_value_of_another_scenario_is_incomplete() -> None:
    three = [
        a_scenario(name="one", matrix={"threads": [1, 8]}),
        a_scenario(name="two", matrix={"binding": ["none"], "threads": [1, 2]}),
        a_scenario(name="three", matrix={"binding": ["none", "one-cpu"]}),
    ]
    run = replace(a_run(scenarios=tuple(three)), only=("threads!=8",))

    results = [
        analyse_scenario(run, source, [launched(expand(scenario, "s.yaml")[0])])
        for scenario, source in zip(three, run.scenarios, strict=True)
    ]

    assert [result.incomplete and result.incomplete.never for result in results] == [0, 1, 1]
    # Its name leaves out what all that were to be measured have.
    assert results[1].cells[0].cell.hidden_axes == ("binding",)


def test_a_cell_given_up_after_two_failures_is_not_incomplete() -> None:
    failing, *cells = FITTING
    launches = [launched(cell, block) for block in range(4) for cell in cells]
    failed = [replace(launched(failing, block), status="failed") for block in range(2)]

    assert studied(*map(skipped, SIBLINGS), *launches, *failed).incomplete is None


def test_refused_launches_without_retry_leave_a_cell_incomplete() -> None:
    refused = replace(
        launched(FITTING[0]), status="invalid", disturbance=replace(OUTSIDE, refused=True)
    )
    launches = [launched(cell, block) for block in range(4) for cell in FITTING[1:]]

    found = studied(*map(skipped, SIBLINGS), *launches, refused).incomplete

    assert found is not None
    assert (found.never, found.short, found.of) == (0, 1, 4)


@pytest.mark.parametrize(
    ("stopped_ms", "throttled", "is_said"), [(95.0, 80, True), (5.5, 80, False), (95.0, 3, False)]
)
def test_iterations_too_short_for_their_quota_are_said_beside_the_verdict(
    stopped_ms: float, throttled: int, is_said: bool
) -> None:
    # Seven steps of 5 ms use up the quota; the eighth waits for the next period.
    worker = a_worker(wall_ns=tuple(round(ms * 1e6) for ms in (*[5.0] * 7, stopped_ms) * 4))
    launches = [
        replace(launch, workers=(worker,), quota=build.a_quota_use(throttled=throttled))
        for launch in every_cell(4)
    ]

    said = [flag for flag in flags(studied(*launches), ()) if "quota" in flag.title]

    assert [flag.tone for flag in said] == (["warn"] if is_said else [])


@pytest.mark.parametrize(
    ("passed", "title", "detail"),
    [
        (8, "8 fairness checks passed", "evaluated from the records"),
        (7, "1 fairness check needs attention", "7 of 8 passed, evaluated from the records"),
        (5, "3 fairness checks need attention", "5 of 8 passed, evaluated from the records"),
    ],
)
def test_a_flag_counts_the_fairness_checks_that_failed(
    passed: int, title: str, detail: str
) -> None:
    checks = [Check(passed=index < passed, says="", evidence="") for index in range(8)]
    flag = flags(studied(*every_cell(4)), checks)[-1]

    assert (flag.title, flag.detail, flag.link) == (title, detail, "#fairness")
    assert (flag.tone == "warn") == (passed < 8)


def test_a_disturbed_launch_of_a_cell_with_enough_others_is_discarded_and_flagged() -> None:
    host = tuple(cell for cell in FITTING if cell.environment == "host")
    first, *launches = (launched(cell, block) for block in range(4) for cell in host)

    flag = flag_of(studied(replace(first, disturbance=OUTSIDE), *launches), "discarded")

    assert (flag.tone, flag.title) == ("warn", "1 of 8 launches discarded")
    assert flag.detail == "disturbed by other programs"


def test_values_based_on_disturbed_launches_are_flagged() -> None:
    host = tuple(cell for cell in FITTING if cell.environment == "host")
    first, *launches = (launched(cell, block) for block in range(2) for cell in host)

    flag = flag_of(studied(replace(first, disturbance=OUTSIDE), *launches), "disturbed")

    assert (flag.tone, flag.title) == ("warn", "1 of 4 launches was disturbed, and counts")
    assert flag.detail == (
        "disturbed by other programs for most of its time: unbound, environment host"
    )


def test_rows_show_disturbed_and_discarded_launches() -> None:
    calm, fast = (CELLS[f"environment=host,binding={mode}"] for mode in ("none", "one-cpu"))
    launches = [
        *(launched(calm, block, 10.0) for block in range(3)),
        *(replace(launched(fast, block, 8.0), disturbance=OUTSIDE) for block in range(3)),
        replace(launched(calm, 3, 40.0), disturbance=OUTSIDE),
    ]

    table = configurations(studied(*launches))

    assert {row.cell.cell.binding.mode: row.notes for row in table.rows} == {
        "none": ("1 of 4 launches discarded: disturbed by other programs",),
        "one-cpu": ("same CPUs and threads as unbound", "3 of 3 launches disturbed"),
    }
    medians_ns = [row.cell.summary.median_ns for row in table.rows]
    assert medians_ns == pytest.approx([8e6, 10e6])
    by_id = {row.launch.id: row for row in launch_rows(studied(*launches))}
    assert by_id[launches[-1].id].reason == "Disturbed by other programs"


def test_the_verdict_mentions_a_disturbed_launch_it_is_based_on() -> None:
    calm, fast = (CELLS[f"environment=host,binding={mode}"] for mode in ("none", "one-cpu"))
    disturbed = replace(launched(fast, 0, 8.0), disturbance=OUTSIDE)
    launches = [launched(calm, 0, 10.0), disturbed]

    support = plain(page_of(studied(*launches)).hero.support)

    assert "1 of these 2 launches was disturbed from outside." in support
    assert "disturbed from outside" not in plain(
        page_of(studied(launches[0], launched(fast, 0, 8.0))).hero.support
    )


LOCK = EnvironmentLock(name="host", sha256="", python="3.11.2", packages=("numpy==2.0",))
CALIBRATED_SCENARIO = a_scenario()
RUN = a_run(scenarios=(CALIBRATED_SCENARIO,), environments=(LOCK,))
SOURCE = RUN.scenarios[0]


def a_calibration(**changes: Any) -> Calibration:
    """Of the scenario and the run above."""
    same = {
        "host": RUN.host.id,
        "lock": lock_digest(RUN.environments, "host"),
        "scenario": CALIBRATED_SCENARIO.name,
        "sha256": SOURCE.sha256,
    }
    return build.a_calibration(**{**same, **changes})


def test_the_latest_matching_calibration_is_used() -> None:
    older = a_calibration()
    newer = a_calibration(run="c2", at="2026-02-01T00:00:00Z")

    assert calibration_for([newer, older], RUN, SOURCE) == newer


@pytest.mark.parametrize(
    "change",
    [
        {"host": "another"},
        {"sha256": "another"},
        {"profile": "quick"},
        {"lock": "another"},
        {"scenario": "another"},
    ],
)
def test_calibrations_of_another_host_or_scenario_are_ignored(change: dict[str, str]) -> None:
    assert calibration_for([a_calibration(**change)], RUN, SOURCE) is None


def test_the_noise_floor_is_for_as_many_launches_as_the_verdict() -> None:
    assert noise_floor_note(a_calibration(), launches=10) == (
        "Noise floor ±2.1 % with 6 launches of each, measured 2026-01-01 by comparing the"
        " baseline with itself: a slowdown of 4.0 % is detected in 9 of 10 comparisons."
    )
    assert "±0.7 % with 30 launches" in noise_floor_note(a_calibration(), launches=30)
    assert "no slowdown up to 10×" in noise_floor_note(a_calibration(), launches=30)
    assert noise_floor_note(None, launches=6) == ""


def test_the_noise_floor_is_part_of_the_verdicts_support() -> None:
    cells = expand(CALIBRATED_SCENARIO, "s.yaml")
    launches = [
        a_launch(cell=cell, block=block, position=position)
        for block in range(6)
        for position, cell in enumerate(cells)
    ]
    studied = analyse_scenario(RUN, SOURCE, launches)

    with_it = hero(studied, (), [a_calibration()]).support

    assert "Noise floor ±2.1 %" in "".join(piece.text for piece in with_it)
    assert with_it[: len(hero(studied, ()).support)] == hero(studied, ()).support


def test_copies_of_a_cell_make_a_calibration_of_it() -> None:
    (cell, _) = expand(CALIBRATED_SCENARIO, "s.yaml")
    launches = [
        timed(
            1 + 0.01 * ((block + position) % 3),
            cell=replace(cell, axes=(*cell.axes, ("copy", copy))),
            block=block,
            position=position,
        )
        for block in range(6)
        for position, copy in enumerate("ab")
    ]

    calibration = calibrated(RUN, SOURCE, launches)

    assert calibration is not None
    assert (calibration.cell, calibration.blocks, calibration.lock) == (
        cell.key,
        6,
        a_calibration().lock,
    )
    assert [one.launches for one in calibration.noise] == [6, 30]
    assert calibration_for([calibration], RUN, SOURCE) == calibration


def test_two_pairs_are_too_few_for_a_calibration() -> None:
    (cell, _) = expand(CALIBRATED_SCENARIO, "s.yaml")
    launches = [
        a_launch(cell=replace(cell, axes=(*cell.axes, ("copy", copy))), block=block)
        for block in range(2)
        for copy in "ab"
    ]

    assert calibrated(RUN, SOURCE, launches) is None
