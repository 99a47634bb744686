"""A scenario by commit: every cell once for each, and compared with itself."""

from typing import Any

import pytest

from corebound.errors import ScenarioFaults
from corebound.scenario.compared_axis import runs_in_project, with_compared_commits
from corebound.scenario.loader import load
from corebound.scenario.matrix import baseline_of, expand
from corebound.scenario.models import Scenario
from support.build import a_scenario

BASE, HEAD = "1234567890", "1e23456789"


def a_project(**document: Any) -> Scenario:
    return a_scenario(**{"workload": "m:f", "environment": "project", **document})


@pytest.mark.parametrize(
    "matrix",
    [
        {},
        {"binding": ["none", "one-cpu"], "threads": [1, 2]},
        {"parameters": {"size": [1, 2]}, "exclude": [{"parameters": {"size": 1}}]},
        {"binding": ["none"], "include": [{"binding": "node", "threads": 2}, {"omp": 3}]},
        {"include": [{"binding": "node"}, {"binding": "none", "threads": 2}]},
    ],
)
def test_each_cell_is_there_once_for_each_commit(matrix: dict[str, Any]) -> None:
    scenario = a_project(matrix=matrix)
    plain = [dict(cell.axes) for cell in expand(scenario, "a.yaml")]

    cells = expand(with_compared_commits(scenario, (BASE, HEAD), "a.yaml"), "a.yaml")

    for commit in (BASE, HEAD):
        of_commit = [
            {axis: value for axis, value in cell.axes if axis != "commit"}
            for cell in cells
            if cell.commit == commit
        ]
        assert sorted(map(str, map(sorted, map(dict.items, of_commit)))) == sorted(
            map(str, map(sorted, map(dict.items, plain)))
        )
    assert len(cells) == 2 * len(plain)
    assert {cell.environment for cell in cells} == {f"project@{BASE}", f"project@{HEAD}"}


def test_each_cell_is_compared_with_itself_at_the_first_commit() -> None:
    scenario = with_compared_commits(
        a_project(baseline={"binding": "one-cpu"}), (BASE, HEAD), "a.yaml"
    )
    cells = expand(scenario, "a.yaml")

    for cell in cells:
        baseline = baseline_of(cell, cells, scenario)
        assert baseline is not None
        assert baseline.commit == BASE
        assert dict(baseline.axes)["binding"] == dict(cell.axes)["binding"]


def test_it_has_a_name_of_its_own_and_is_readable_from_its_record() -> None:
    scenario = with_compared_commits(
        a_project(name="n" * 80), (BASE, HEAD), "a.yaml", launches=(4, 9), margin=0.1
    )

    assert scenario.name == "n" * 72 + ".commits"
    assert (
        scenario.measure.launches.min,
        scenario.measure.launches.max,
        scenario.measure.margin,
    ) == (4, 9, 0.1)
    assert scenario.claims == ()


def test_a_margin_asked_for_holds_under_a_profile_too() -> None:
    scenario = a_project(profiles={"quick": {"margin": 0.5, "iterations": 10}})

    made = with_compared_commits(scenario, (BASE, HEAD), "a.yaml", margin=0.1)

    assert made.profiles["quick"].margin is None
    assert made.profiles["quick"].iterations == 10


def test_only_scenarios_of_the_project_alone_are_comparable() -> None:
    assert runs_in_project(a_project())
    assert not runs_in_project(a_scenario())
    assert not runs_in_project(
        a_scenario(workload="m:f", matrix={"environment": ["project", "host"]})
    )


def test_a_scenario_with_commits_of_its_own_is_refused() -> None:
    with pytest.raises(ScenarioFaults, match="already names commits"):
        with_compared_commits(a_project(matrix={"commit": ["v1", "v2"]}), (BASE, HEAD), "a.yaml")


TEXT = """\
schema: 1
name: mine
title: Mine
question: Which release is faster?
workload: mine:setup
environment: {environment}
matrix:
  commit: [{commit}, main]
"""


def test_a_scenario_may_name_commits_itself() -> None:
    scenario = load(TEXT.format(environment="project", commit="v1.0").encode(), "mine.yaml")

    cells = expand(scenario, "mine.yaml")

    assert [cell.key for cell in cells] == ["commit=v1.0", "commit=main"]
    assert [cell.framework for cell in cells] == ["none", "none"]


@pytest.mark.parametrize(
    ("environment", "commit", "text"),
    [
        ("host", "v1.0", "`commit: v1.0` does not apply to `environment: host`"),
        ("project", "12345678", "in quotes"),
        ("project", "--all", "is not a commit"),
    ],
)
def test_what_is_no_commit_is_a_fault(environment: str, commit: str, text: str) -> None:
    with pytest.raises(ScenarioFaults) as refused:
        load(TEXT.format(environment=environment, commit=commit).encode(), "mine.yaml")

    assert text in str(refused.value)
