"""Findings on the page, in the exports and in what `run --json` says."""

from __future__ import annotations

import json
from pathlib import Path

from corebound.analysis.scenario_result import ScenarioResult, findings, study
from corebound.analysis.wording import TextSpan, plain
from corebound.cli.output.run import RunResult, as_json
from corebound.records import jsonl
from corebound.report.downloads import cells_json
from corebound.report.scenario.findings import finding_rows
from corebound.scenario.matrix import expand
from support.build import a_launch, a_placement, a_run, a_scenario, a_thread, a_worker
from support.findings import RECORDED


def _stored(name: str) -> jsonl.Stored:
    return jsonl.read(RECORDED / f"{name}.jsonl")


def _study(name: str) -> ScenarioResult:
    stored = _stored(name)
    return study(stored.run, stored.run.scenarios[0], stored.launches)


def test_a_row_has_sign_and_word_settings_as_code_and_its_cells_by_name() -> None:
    (row,) = finding_rows(findings(_study("several-processes")))

    assert (row.tone, row.sign, row.meaning) == ("bad", "▼", "costs time")
    assert TextSpan("threads: 1", "code") in row.what
    assert TextSpan("binding: per-worker", "code") in row.fix
    assert [cell.name for cell in row.cells] == ["unbound", "unbound"]
    assert row.more == ""


def _threads_on_one_cpu() -> ScenarioResult:
    """Four threads and two share one CPU: one rule, whose figures differ by cell."""
    scenario = a_scenario(matrix={"threads": [4, 2]}, baseline={"threads": 4})
    run = a_run(scenarios=(scenario,))
    launches = [
        a_launch(
            cell=cell,
            position=place,
            placement=a_placement(cpus=(0,), threads=threads),
            workers=(
                a_worker(
                    threads=tuple(
                        a_thread(tid=100 + index, allowed=(0,), wait_ns=900_000_000)
                        for index in range(threads)
                    ),
                    threads_asked=threads,
                    threads_used=threads,
                ),
            ),
        )
        for place, (cell, threads) in enumerate(
            zip(expand(scenario, "s.yaml"), (4, 2), strict=True)
        )
    ]
    return study(run, run.scenarios[0], launches)


def test_figures_of_the_first_of_several_cells_are_said_to_be_its() -> None:
    (row,) = finding_rows(findings(_threads_on_one_cpu()))

    assert "4 threads" in plain(row.what)
    assert [cell.whole for cell in row.cells] == ["4 threads", "2 threads"]
    assert row.of_first


def test_figures_of_one_cell_alone_are_not_said_to_be_the_first_s() -> None:
    rows = finding_rows(findings(_study("mindspore-dispatch-threads")))

    assert [row.of_first for row in rows] == [False, False]


def test_findings_are_strongest_first() -> None:
    rows = finding_rows(findings(_study("mindspore-dispatch-threads")))

    assert [row.tone for row in rows] == ["bad", "warn"]


def test_a_scenario_without_findings_has_no_rows() -> None:
    assert finding_rows(findings(_study("resnet50-inference"))) == ()


def test_the_export_names_rules_and_cells_for_machines() -> None:
    known = _study("numpy-blas")

    (found,) = json.loads(cells_json(known, findings(known)))["findings"]

    assert found["rule"] == "slower-blas"
    assert found["cells"] == ["threads=1,dtype=float32,blas=mkl"]
    assert 2.2 < found["times_ratio"] < 2.4


def test_run_json_has_each_scenario_s_findings() -> None:
    stored = _stored("data-loaders")
    told = RunResult(
        run=stored.run, file=Path("run.jsonl"), launches=stored.launches, ending="complete"
    )

    (found,) = json.loads(as_json(told))["findings"]

    assert (found["scenario"], found["rule"]) == ("data-loaders", "loaders")
    assert found["fix"].startswith("Set `loaders: 2`")
