"""Comparisons of two commits as if measured."""

from msgspec.structs import replace

from corebound.analysis.host_records import Record
from corebound.analysis.scenario_result import ScenarioResult, analyse_scenario
from corebound.records.run_record import Commit, EnvironmentLock
from corebound.records.telemetry import Disturbance
from corebound.scenario.compared_axis import with_compared_commits
from corebound.scenario.matrix import expand
from corebound.scenario.models import Scenario
from support.build import a_run, a_scenario
from support.results import a_result

BASE, HEAD = "1f0c1f0c1f", "caf92a7000"
OUTSIDE = Disturbance(share=1.0, by=("foreign load",), evidence=("all of it",), refused=True)
FILE = "scenarios/hashing.yaml"


def a_file(**changes: object) -> Scenario:
    """The scenario as its file has it."""
    return a_scenario(**{"matrix": {"binding": ["none"]}, "environment": "project"} | changes)


def compared(
    ms: dict[str, float], scenario: Scenario | None = None, *, spread: float = 0.01
) -> ScenarioResult:
    """A comparison of two commits, by the time of each side's iterations."""
    both = with_compared_commits(scenario or a_file(), [BASE, HEAD], FILE)
    times = {
        cell.key: ms[cell.commit or ""] for cell in expand(both, FILE) if (cell.commit or "") in ms
    }
    run = replace(
        a_run(scenarios=(both,)),
        argv=("corebound", "compare-commits", "main", "HEAD", FILE, "--budget", "60s"),
    )
    return a_result(both, times, run=run, spread=spread)


def disturbed(result: ScenarioResult, number: int) -> ScenarioResult:
    """The same with so many more launches that other programs disturbed."""
    launches = result.launches
    refused = [
        replace(
            launch,
            id=f"{launch.id}-{at}",
            status="invalid",
            reason="disturbed",
            disturbance=OUTSIDE,
        )
        for at, launch in enumerate((launches * number)[:number])
    ]
    return analyse_scenario(result.run, result.source, (*launches, *refused))


def with_builds(result: ScenarioResult) -> ScenarioResult:
    """The same with what was built of each commit."""
    locks = tuple(
        EnvironmentLock(
            name=cell.cell.environment,
            sha256="",
            python="3.11.2",
            packages=("numpy==2.0", f"torch==2.{at}"),
            commit=Commit(
                sha=f"{at}" * 40,
                subject=f"Change {at}",
                committed_at="2026-03-13T18:00:00Z",
                dirty=False,
            ),
        )
        for at, cell in enumerate(result.cells)
    )
    run = replace(result.run, environments=locks)
    return analyse_scenario(run, result.source, result.launches)


def a_commit_comparison() -> Record:
    """Two commits on a busy host, which leaves their difference open."""
    result = with_builds(disturbed(compared({BASE: 10.0, HEAD: 16.0}, spread=0.9), 12))
    return result.run, result.launches
