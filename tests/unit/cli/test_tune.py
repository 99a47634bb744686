"""What `corebound tune` prints, and what it refuses."""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from corebound.cli.app import main
from corebound.planning.artefacts import KINDS
from corebound.planning.host_support import HostCapabilities
from corebound.planning.plan import plan_cells
from corebound.runner import Task
from corebound.scenario.matrix import expand
from corebound.workflow import tune as workflow_tune
from corebound.workflow.execute import Budget, RunResult
from corebound.workflow.prepare import PreparedRun
from support.build import a_host
from support.tuning import BOUND, DEFAULT, ONE_CPU, ONE_THREAD, a_tuned_run, a_tuned_scenario


def raced(
    folder: Path, monkeypatch: pytest.MonkeyPatch, times_ms: dict[str, float], *options: str
) -> int:
    """`corebound tune --emit` after a race whose launches took these times; its exit code."""
    run, launches = a_tuned_run(times_ms)
    scenario = a_tuned_scenario()
    host = HostCapabilities(
        topology=a_host(), tools=frozenset({"taskset"}), pythons={"host": sys.executable}
    )
    cells = expand(scenario, "a.yaml")
    planned = plan_cells(scenario, cells, host, folder=str(folder), profile=None, seed=1)
    task = Task(scenario=scenario, planned=planned, tuning=run.tuning)
    file = folder / "records" / "r1.jsonl"
    prepared = PreparedRun(run=run, file=file, tasks=(task,), done=launches)
    result = RunResult(run=run, file=file, launches=launches, ending="complete", not_launched=())
    for name, stub in (
        (
            "hold_host_for",
            lambda request, *_arguments: nullcontext(Budget(request.budget_s, request.begin_s)),
        ),
        ("_prepare", lambda *_arguments: prepared),
        ("preflight", lambda *_arguments: prepared),
        ("execute_run", lambda *_arguments, **_options: result),
    ):
        monkeypatch.setattr(workflow_tune, name, stub)
    words = ["corebound", "tune", "a.yaml", "--out", str(folder / "tuned"), *options]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


ALL_KINDS = ",".join(KINDS)
ALIKE = {DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 9.99, ONE_CPU: 15.0}
BEST_DEFAULT = ALIKE | {BOUND: 12.0}
BEST_BOUND = ALIKE | {BOUND: 8.0}


@pytest.mark.parametrize("times_ms", [ALIKE, BEST_DEFAULT], ids=["alike", "default"])
def test_no_file_is_written_where_nothing_is_better_than_the_default(
    times_ms: dict[str, float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = raced(tmp_path, monkeypatch, times_ms, "--emit", ALL_KINDS)

    assert code == 0
    assert not (tmp_path / "tuned").exists()
    out, err = capsys.readouterr()
    assert out.startswith("Keep the default")
    assert "No file was" in " ".join(err.split())


def test_each_file_says_where_it_comes_from_and_what_has_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = raced(tmp_path, monkeypatch, BEST_BOUND, "--emit", "systemd,kubernetes,docker,openvino")

    assert code == 0
    files = [file for file in (tmp_path / "tuned").rglob("*") if file.is_file()]
    assert {file.name for file in files} == {"corebound.conf", "pod.yaml", "docker-run.sh"}
    run, _ = a_tuned_run(BEST_BOUND)
    for file in files:
        header = "\n".join(line for line in file.read_text().splitlines() if line[:2] == "# ")
        for part in (run.host.id, "records/r1.jsonl", "1.25×", "95 % CI", "2026-01-02", "--verify"):
            assert part in header
    assert "`openvino`" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--emit", "shell,fortran"), "--emit: `fortran` cannot be written."),
        (("--objective", "beauty"), "Invalid value for '--objective'"),
        (("--objective", "rate"), "--objective rate: a rate needs a bound of the latency."),
        (("--objective", "rate", "--bound", "p90=1s"), "--bound: `p90=1s` is not a bound"),
        (("--bound", "p99=1s"), "--bound: the objective `latency` has no bound."),
    ],
)
def test_a_wrong_option_is_explained(
    rejection_of: Callable[..., str], options: tuple[str, ...], said: str
) -> None:
    assert said in rejection_of("tune", "nap.yaml", *options)
