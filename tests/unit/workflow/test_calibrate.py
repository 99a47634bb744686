"""The noise floor that applies to a comparison of commits."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.records import documents
from corebound.records.run_record import EnvironmentLock, Run
from corebound.scenario.compared_axis import with_compared_commits
from corebound.stats.noise_floor import lock_digest
from corebound.workflow.calibrate import noise_notes
from support import build
from support.build import a_run, a_scenario
from support.texts import in_order

SCENARIO = a_scenario(environment="project", workload="steps:setup")


PLAIN = a_run(scenarios=(SCENARIO,)).scenarios


LOCK = EnvironmentLock(name="project", sha256="", python="3.11.2", packages=("numpy==2.0",))


def a_comparing_run(*, packages: tuple[str, ...] = LOCK.packages) -> Run:
    """Of two commits, whose cells know their environments by them."""
    both = with_compared_commits(SCENARIO, ("0a1b2c3d4e", "1a1b2c3d4e"), "a-scenario.yaml")
    locks = tuple(
        replace(LOCK, name=f"project@{name}", packages=packages)
        for name in ("0a1b2c3d4e", "1a1b2c3d4e")
    )
    return a_run(scenarios=(both,), environments=locks)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Where the plain scenario was calibrated."""
    run = a_run(scenarios=(SCENARIO,), environments=(LOCK,))
    documents.CALIBRATIONS.keep(
        build.a_calibration(
            host=run.host.id,
            environment="project",
            lock=lock_digest(run.environments, "project"),
            scenario=SCENARIO.name,
            sha256=PLAIN[0].sha256,
        ),
        tmp_path,
    )
    return tmp_path


def test_a_comparison_of_commits_uses_the_calibration_of_the_plain_scenario(records: Path) -> None:
    (said,) = noise_notes(records, a_comparing_run(), PLAIN, launches=6)

    assert in_order(said, "a-scenario: ", "±2.1 %", "6 launches")


def test_without_launches_there_is_no_note(records: Path) -> None:
    assert noise_notes(records, a_comparing_run(), PLAIN, launches=0) == ()
