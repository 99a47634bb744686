"""The machine as `corebound topology` shows it."""

import json
import sys
from pathlib import Path

import pytest

from corebound.analysis.forecast import Forecast
from corebound.cli.commands.plan import check, plan
from corebound.cli.output.plan_notes import forecast_lines
from corebound.errors import ScenarioFaults
from corebound.machine import discovery
from corebound.workflow import plan as workflow_plan
from corebound.workflow import scenarios
from corebound.workflow.host_checks import needs_of
from corebound.workflow.plan import PlanRequest
from support.build import a_host
from support.machine_trees import a_tree, write_files
from support.texts import in_order, numbers_in

SCENARIO = """\
schema: 1
name: nothing
title: Nothing
question: How long does nothing take?
workload: {command: ["true"]}
matrix: {binding: [none, node, one-cpu], threads: [2, per-core]}
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A scenario of six cells, of which three are the same on this host of two cores."""
    monkeypatch.setattr(discovery, "live_topology", lambda: a_host(cores_per_node=2))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nothing.yaml").write_text(SCENARIO)
    return "nothing.yaml"


def test_a_first_run_is_forecast_as_a_range_within_the_budget() -> None:
    def forecast(duration_s: float, *, since: str | None = None) -> Forecast:
        likely = None if since else (duration_s / 3, duration_s * 3)
        return Forecast(
            scenario="a", since=since, cells=2, launches=5, launch_s=duration_s / 10,
            duration_s=duration_s, requested_s=60, half_width=None, range_s=likely,
        )  # fmt: skip

    (guessed,) = forecast_lines([forecast(30)], budget_s=None)
    (limited,) = forecast_lines([forecast(30)], budget_s=60)
    known = forecast_lines([forecast(30, since="2026-01-02T03:04:05Z")], budget_s=None)

    assert in_order(guessed, "10 launches", "between 10.0 s and 90.0 s")
    assert in_order(limited, "10 launches", "between 10.0 s and 60.0 s")
    assert numbers_in(known[0]) == [10, 30]


def test_a_plan_says_what_its_budget_has_no_time_for(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [Path(scenario)]
    for name in ("a-second", "a-third"):
        files.append(Path(f"{name}.yaml"))
        files[-1].write_text(SCENARIO.replace("name: nothing", f"name: {name}"))

    plan(PlanRequest(files=tuple(files), budget_s=1)).print(as_json=False)

    forecast = capsys.readouterr().out.split("\n\n")[-1]
    assert in_order(forecast, "1.00 s", "no time", "a-third")
    assert "--budget 5m" not in forecast


def test_a_plan_names_the_duplicates(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan(PlanRequest(files=(Path(scenario),))).print(as_json=True)

    assert {
        cell["cell"]: cell["duplicate_of"]
        for cell in json.loads(capsys.readouterr().out)["results"]
    } == {
        "binding=none,threads=2": None,
        "binding=none,threads=per-core": "nothing[binding=none,threads=2]",
        "binding=node,threads=2": "nothing[binding=none,threads=2]",
        "binding=node,threads=per-core": "nothing[binding=none,threads=2]",
        "binding=one-cpu,threads=2": None,
        "binding=one-cpu,threads=per-core": None,
    }


def test_plan_and_check_count_the_duplicates(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan(PlanRequest(files=(Path(scenario),))).print()
    assert "nothing: 3 of 6 configurations" in capsys.readouterr().out

    check((Path(scenario),)).print()
    assert in_order(capsys.readouterr().out, "OK: nothing", "6 cells", "3 the same")


def test_a_plan_shows_the_command_that_each_configuration_starts(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = SCENARIO.replace('["true"]', '["true", --threads, "{threads}", -p, "{port}"]')
    (tmp_path / scenario).write_text(own)

    plan(PlanRequest(files=(Path(scenario),))).print()

    started = [line for line in capsys.readouterr().out.splitlines() if "starts:" in line]
    assert [line.split()[3] for line in started] == ["2", "2", "1"]


def test_bodies_that_no_file_has_are_a_fault_before_a_launch(scenario: str, tmp_path: Path) -> None:
    text = SCENARIO.replace('command: ["true"]', 'requests: {url: "http://a/", body: b/*.j}')
    text = text[: text.index("matrix:")] + "parameters: {concurrency: 1}\n"
    (tmp_path / scenario).write_text(text)
    (tmp_path / "b").mkdir()

    with pytest.raises(ScenarioFaults, match=r"no file `b/\*\.j`"):
        check((Path(scenario),))
    (tmp_path / "b" / "1.j").touch()
    check((Path(scenario),)).print()


def test_scenarios_without_their_project_are_named_and_do_not_stop_the_others(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "of-project.yaml").write_text(
        SCENARIO.replace("name: nothing", "name: of-project") + "environment: project\n"
    )
    files = (Path(scenario), Path("of-project.yaml"))

    check(files).print()
    plan(PlanRequest(files=files)).print()

    checked, planned = capsys.readouterr().out.split("nothing[", 1)
    assert "OK: nothing" in checked
    assert "`of-project`" in checked
    assert "`of-project`" in planned
    assert [name for name, _ in needs_of(files).lacking] == ["project"]
    assert needs_of([Path(scenario)]).lacking == ()


@pytest.mark.parametrize(
    ("environment", "lacks"),
    [
        ("{python: ~/nowhere}", "home/nowhere"),
        ("{python: ~nobody-of-that-name/nowhere}", "nowhere"),
        ("{conda: nowhere}", "`nowhere`"),
        ("{python: own}", "own/bin/python -m pip install scikit-learn"),
    ],
)
@pytest.mark.usefixtures("scenario")
def test_what_an_environment_of_ones_own_lacks_is_said_before_a_launch(
    environment: str,
    lacks: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    own = f"environment: {environment}\n"
    (tmp_path / "own" / "bin").mkdir(parents=True)
    program = tmp_path / "own" / "bin" / "python"
    # Not the packages of these tests.
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    program.chmod(0o755)
    text = SCENARIO.replace('{command: ["true"]}', "steps:short") + own
    (tmp_path / "steps.py").write_text("def short():\n    return int\n")
    (tmp_path / "own.yaml").write_text(f"{text}framework: scikit-learn\n")

    check((Path("own.yaml"),)).print()
    assert lacks in capsys.readouterr().out
    plan(PlanRequest(files=(Path("own.yaml"),))).print()
    assert lacks in capsys.readouterr().out
    ((_, reason),) = needs_of([Path("own.yaml")]).lacking
    assert lacks in reason.what + reason.fix

    (tmp_path / "own.yaml").write_text(text)
    with pytest.raises(ScenarioFaults) as caught:
        check((Path("own.yaml"),))
    (fault,) = caught.value.faults
    assert (lacks in fault.what) == ("nowhere" in environment)


OWN_SERVER = """\
workload:
  server: {command: [PROGRAM, app:app, --port, "{port}"]}
  requests: {url: "http://127.0.0.1:{port}/"}
parameters: {concurrency: 1}
"""


# Environment and program: whether the program is found.
PROGRAMS = {
    ("host", "no-such-program"): False,
    ("host", "./not-executable"): False,
    ("host", "in-own"): False,
    ("host", "sh"): True,
    ("host", "./own/bin/in-own"): True,
    ("{python: own}", "in-own"): True,
    ("{python: own}", "sh"): True,
    ("{python: own}", "no-such-program"): False,
}


@pytest.mark.parametrize(
    "workload",
    [
        "workload: {command: [PROGRAM]}\n",
        'workload: {command: ["{tool}"]}\nparameters: {tool: PROGRAM}\n',
        "workload: {command: [sleep, '1'], prepare: [PROGRAM]}\n",
        OWN_SERVER,
    ],
)
@pytest.mark.usefixtures("scenario")
def test_a_program_that_is_missing_is_named_before_anything_runs(
    workload: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own" / "bin").mkdir(parents=True)
    (tmp_path / "own" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "not-executable").touch()
    (tmp_path / "own" / "bin" / "in-own").write_text("#!/bin/sh\n")
    (tmp_path / "own" / "bin" / "in-own").chmod(0o755)
    files = []
    for number, (environment, program) in enumerate(PROGRAMS):
        head = "".join(SCENARIO.splitlines(keepends=True)[:4]).replace("nothing", f"s{number}")
        text = head + workload.replace("PROGRAM", program) + f"environment: {environment}\n"
        files.append(tmp_path / f"s{number}.yaml")
        files[-1].write_text(text)

    checked = {one.scenario: one.missing for one in workflow_plan.check(*files)}
    plan(PlanRequest(files=tuple(files))).print()
    planned = capsys.readouterr().out

    for number, ((_, program), is_there) in enumerate(PROGRAMS.items()):
        missing = checked[f"s{number}"]
        assert (missing is None) == is_there
        if missing is not None:
            assert f"{Path(program).name}`" in missing.what
            assert missing.what in planned


def test_a_saved_machine_is_not_judged_by_the_programs_and_processor_of_this_host(
    scenario: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_files({path: text.encode() for path, text in a_tree().items()}, tmp_path / "saved")
    (tmp_path / scenario).write_text(SCENARIO + "openmp: llvm\n")
    monkeypatch.delattr(scenarios, "host_capabilities")

    plan(PlanRequest(files=(Path(scenario),), sysfs=tmp_path / "saved")).print(as_json=True)

    cells = json.loads(capsys.readouterr().out)["results"]
    assert [cell["skipped"] for cell in cells] == [None] * len(cells)


def test_a_machine_is_described_from_package_to_cpu() -> None:
    host = a_host(nodes=2, cores_per_node=1, cpus_per_core=2, allowed=frozenset({0, 1, 2}))

    assert str(host).splitlines() == [
        "2 packages, 2 nodes, 2 cores, 4 CPUs, SMT, 16 GiB, allowed 0-2",
        "package 0",
        "  node 0, 8.0 GiB",
        "    L3, 32 MiB",
        "      core 0: CPUs 0,2",
        "package 1",
        "  node 1, 8.0 GiB",
        "    L3, 32 MiB",
        "      core 0: CPUs 1,3, not allowed: 3",
    ]
