"""The noise floor stands beside every verdict of `compare-commits`, in each of its formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from corebound.analysis.commit_comparison import CellAtCommits, judge_cells
from corebound.cli.commands.compare_commits import Format, formatted
from corebound.records import documents
from corebound.records.run_record import EnvironmentLock, Run
from corebound.scenario.comparison import with_compared_commits
from corebound.stats.comparison import Comparison
from corebound.stats.intervals import Interval
from corebound.stats.noise_floor import lock_digest
from corebound.workflow.calibrate import noise_notes
from corebound.workflow.compare_commits import CompareCommitsResult
from corebound.workflow.sides import Side, Sides
from support import build
from support.build import a_run, a_scenario

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
    documents.keep_calibration(
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


def test_two_commits_of_a_scenario_have_the_noise_floor_that_it_was_calibrated_with(
    records: Path,
) -> None:
    (said,) = noise_notes(records, a_comparing_run(), PLAIN, launches=6)

    assert said.startswith("a-scenario: Noise floor ±2.1 % with 6 launches of each")


def test_a_margin_of_the_command_line_is_told_to_be_another(records: Path) -> None:
    (said,) = noise_notes(records, a_comparing_run(), PLAIN, launches=6, own_margin=False)

    assert said.endswith("This uses the scenario's own margin.")


def test_other_packages_have_another_noise(records: Path) -> None:
    assert noise_notes(records, a_comparing_run(packages=("numpy==2.1",)), PLAIN, launches=6) == ()


def test_where_nothing_was_compared_there_is_no_verdict_to_stand_beside(records: Path) -> None:
    assert noise_notes(records, a_comparing_run(), PLAIN, launches=0) == ()


@pytest.mark.parametrize("form", get_args(Format))
def test_every_format_holds_the_noise_and_how_many_launches_would_decide(form: Format) -> None:
    said = formatted(
        CompareCommitsResult(
            sides=Sides(
                subject="shop",
                axis=("commit",),
                base=Side(name="0a1b", title="begin", commit=None),
                head=Side(name="1a1b", title="go on", commit=None),
            ),
            judged=judge_cells([an_undecided_pair(cpu_ratio=1.5)]),
            noise=("a-scenario: Noise floor ±2.1 %.",),
            records=Path("r.jsonl"),
            ending="complete",
        ),
        form,
    )

    assert "a-scenario: Noise floor ±2.1 %." in said
    if form == "json":
        (cell,) = json.loads(said)["cells"]
        assert (cell["launches_needed"], cell["cpu_ratio"]) == (40, 1.5)
    else:
        assert "inconclusive, ~40 launches" in said
    if form == "junit":
        assert '<property name="noise"' in said
    if form in {"text", "md"}:
        assert "the ratio of CPU times is 1.500×" in said


@pytest.mark.parametrize(
    ("cpu_ratio", "differs"),
    # The interval is of speed-ups from 0.9 to 1.1: times from 1/1.1 = 0.91 to 1/0.9 = 1.11.
    [(None, False), (1.0, False), (1.1, False), (1.2, True), (0.8, True)],
)
def test_cpu_time_differs_where_the_interval_of_wall_time_does_not_hold_it(
    cpu_ratio: float | None, differs: bool
) -> None:
    assert an_undecided_pair(cpu_ratio=cpu_ratio).cpu_differs is differs


def an_undecided_pair(*, cpu_ratio: float | None) -> CellAtCommits:
    return CellAtCommits(
        scenario="a-scenario",
        cell="default",
        base_ns=1e6,
        head_ns=1e6,
        comparison=Comparison(
            speedup_ratio=1.0,
            interval=Interval(low=0.9, high=1.1, confidence=0.95),
            verdict="undecided",
            pairs=6,
            per_block=(),
            p_value=0.9,
            launches_needed=40,
        ),
        margin=0.02,
        missing=(),
        cpu_ratio=cpu_ratio,
    )
