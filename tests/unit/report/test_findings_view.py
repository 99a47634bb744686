"""Findings on the page, in the exports and in what `run --json` says."""

from __future__ import annotations

import json
from pathlib import Path

from corebound.analysis.scenario_result import ScenarioResult, findings, study
from corebound.analysis.wording import full_name
from corebound.cli.commands.run import run_document
from corebound.records import jsonl
from corebound.report.downloads import cells_json
from corebound.report.render import Renderer
from corebound.report.scenario.page import scenario_page
from corebound.scenario.matrix import expand
from corebound.workflow.execute import RunResult
from support.build import a_launch, a_placement, a_run, a_scenario, a_thread, a_worker
from support.findings import RECORDED
from support.markup import Element, parse_html
from support.paths import ROOT
from support.report_sample import NOW

TEMPLATES = ROOT / "reports" / "templates"
_RENDERER = Renderer({path.name: path.read_text("utf-8") for path in TEMPLATES.iterdir()})


def _stored(name: str) -> jsonl.Stored:
    return jsonl.read(RECORDED / f"{name}.jsonl")


def _study(name: str) -> ScenarioResult:
    stored = _stored(name)
    return study(stored.run, stored.run.scenarios[0], stored.launches)


def _section(result: ScenarioResult) -> Element | None:
    """The section of findings of a scenario's page; None if it has none."""
    page = scenario_page(result, findings=findings(result), now=NOW, records_file="r.jsonl")
    sections = parse_html(_RENDERER.page("scenario", page)).all("section")
    return next(
        (section for section in sections if section.attributes.get("id") == "findings"), None
    )


def test_a_finding_has_sign_and_word_settings_as_code_and_its_cells_by_name() -> None:
    section = _section(_study("several-processes"))

    assert section is not None
    assert "▼costs time: " in section.text.replace("\n", "")
    code = [element.text for element in section.all("code")]
    assert {"threads: 1", "binding: per-worker"} <= set(code)
    assert section.text.count("unbound") >= 2


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
    (finding,) = findings(_threads_on_one_cpu())
    section = _section(_threads_on_one_cpu())

    assert "4 threads" in finding.what
    assert [full_name(cell) for cell in finding.cells] == ["4 threads", "2 threads"]
    assert finding.of_first
    assert section is not None
    assert "4 threads, whose figures these are; also with 2 threads" in section.text


def test_figures_of_one_cell_alone_are_not_said_to_be_the_first_s() -> None:
    section = _section(_study("mindspore-dispatch-threads"))

    assert section is not None
    assert "whose figures these are" not in section.text


def test_findings_are_strongest_first() -> None:
    found = findings(_study("mindspore-dispatch-threads"))

    assert [finding.tone for finding in found] == ["bad", "warn"]


def test_a_page_without_findings_has_no_section_for_them() -> None:
    assert _section(_study("resnet50-inference")) is None


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

    (found,) = run_document(told)["findings"]

    assert (found["scenario"], found["rule"]) == ("data-loaders", "loaders")
    assert found["fix"].startswith("Set `loaders: 2`")
