"""Specifies the fairness checks and what each reports when it fails."""

import pytest
from msgspec.structs import replace

from corebound.analysis.fairness import Check, checks
from corebound.analysis.scenario_result import analyse_scenario
from corebound.records.launch_record import Launch
from corebound.records.telemetry import Pauses
from corebound.scenario.matrix import expand
from support.build import a_host_check, a_launch, a_placement, a_run, a_scenario, a_thread, a_worker
from support.texts import in_order, numbers_in

SCENARIO = a_scenario()
CELLS = expand(SCENARIO, "s.yaml")


def launched(block: int, place: int = 0, position: int = 0) -> Launch:
    return a_launch(
        cell=CELLS[place],
        block=block,
        position=position,
        placement=a_placement(cpus=(0,), bound=place == 1),
    )


def checks_of(*launches: Launch, warns: bool = False) -> tuple[Check, ...]:
    check = a_host_check(state="warning" if warns else "ok")
    run = replace(a_run(scenarios=(SCENARIO,)), preflight=(check,))
    return checks(analyse_scenario(run, run.scenarios[0], launches))


def never_steady() -> Launch:
    climbing = tuple(1_000_000 * (10 + index) for index in range(120))
    return replace(launched(0), workers=(a_worker(wall_ns=climbing),))


FAILING = {
    "Some threads ran on other CPUs": lambda: checks_of(
        replace(launched(0, 1), workers=(a_worker(threads=(a_thread(stays=((1, 0, 100),)),)),))
    ),
    "Thread counts differ from the configuration": lambda: checks_of(
        replace(launched(0), workers=(a_worker(threads_asked=4, threads_used=2),))
    ),
    "Cells ran in the same order in every block": lambda: checks_of(
        *(launched(block, place, place) for block in range(3) for place in range(2))
    ),
    "A launch ran while it was paused": lambda: checks_of(
        replace(launched(0), pauses=Pauses(duration_ns=1_000_000_000, cpu_ns=30_000_000))
    ),
    "Some launches did not reach steady state": lambda: checks_of(never_steady()),
    "Some processes outlived their launch": lambda: checks_of(
        replace(launched(0), leftover_processes=("daemon",))
    ),
    "Versions differ between launches of an environment": lambda: checks_of(
        launched(0), replace(launched(1), workers=(replace(a_worker(), python="3.12.0"),))
    ),
    "Sampling overhead: over 0.5 % of one CPU": lambda: checks_of(
        replace(launched(0), look_ns=1_000_000_000, duration_ns=2_000_000_000)
    ),
    "Host checks gave warnings when the run started": lambda: checks_of(launched(0), warns=True),
}


@pytest.mark.parametrize("says", FAILING)
def test_a_failed_check_states_what_failed(says: str) -> None:
    found = FAILING[says]()

    assert [check.says for check in found if check.passed is False] == [says]


def test_a_single_order_of_cells_is_counted_as_one() -> None:
    found = FAILING["Cells ran in the same order in every block"]()

    order = next(one for one in found if "order" in one.says)
    assert in_order(order.evidence, "one order", "3 blocks")


def test_steady_launches_are_counted() -> None:
    (steady,) = (one for one in checks_of(never_steady(), launched(1)) if "steady" in one.says)

    assert (steady.passed, numbers_in(steady.evidence)) == (False, [1, 2])


def test_a_passed_check_states_what_held() -> None:
    found = checks_of(launched(0, 0, 0), launched(0, 1, 1), launched(1, 1, 0), launched(1, 0, 1))

    passed = [check.says for check in found if check.passed]
    assert any("steady state" in says for says in passed)
    assert any("random order" in says for says in passed)
    assert not any(check.passed is False for check in found)


def test_the_cpu_time_of_paused_launches_is_shown() -> None:
    quiet = Pauses(duration_ns=1_000_000_000, cpu_ns=1_000_000)

    shown = checks_of(replace(launched(0), pauses=quiet), replace(launched(1), pauses=quiet))

    (check,) = [check for check in shown if check.says.startswith("Launches that took turns")]
    assert check.passed
    assert in_order(check.evidence, "2 launches", "0.10 %")
