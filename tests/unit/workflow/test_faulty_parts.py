"""What cannot be read or analysed is named, and costs the site nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corebound.records import documents
from corebound.records.history_files import keep
from corebound.report import downloads, site
from corebound.workflow import run_index, tunings
from corebound.workflow.report import write_site
from support.build import a_cell, a_launch, a_run, a_scenario, a_series, write_records
from support.tuning import a_tuned_run


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Two runs of a scenario each, the histories of two projects, and a race."""
    folder = tmp_path / "records"
    for number, name in enumerate(("good", "bad")):
        run = a_run(
            run_id=f"r{number}",
            started_at=f"2026-01-0{number + 1}T00:00:00Z",
            scenarios=(a_scenario(name=name),),
        )
        launches = [
            a_launch(cell=a_cell(scenario=name, axes=(("binding", mode),)), run=run.id, block=block)
            for block in range(3)
            for mode in ("none", "one-cpu")
        ]
        write_records(folder, run, *launches)
        keep(f"{name}-project", [a_series([1e6] * 9, project=f"{name}-project")], folder)
    run, of_race = a_tuned_run(
        {
            "binding=none,threads=default": 10.0,
            "binding=none,threads=1": 14.0,
            "binding=physical-cores,threads=per-core": 8.0,
            "binding=one-cpu,threads=1": 15.0,
        }
    )
    write_records(documents.tunes_folder(folder), run, *of_race)
    return folder


def report(records: Path) -> tuple[set[str], list[str]]:
    """The pages of the site, and the warnings."""
    warnings: list[str] = []
    out = records.parent / "site"
    written = write_site(
        out, records=records, status=records / "status.yaml", notify=warnings.append
    )
    assert written.index.is_file()
    pages = {path.relative_to(out).as_posix() for path in out.rglob("*.html")}
    return pages, warnings


def raise_for(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, is_bad: Callable[..., bool]
) -> None:
    """Let a function raise what only a bug raises, for some arguments."""
    really = getattr(module, name)

    def raising(*arguments: Any, **options: Any) -> Any:
        if is_bad(*arguments):
            raise OverflowError("math range error")
        return really(*arguments, **options)

    monkeypatch.setattr(module, name, raising)


def scenario_pages(pages: set[str]) -> set[str]:
    return {page for page in pages if page.startswith("scenario/")}


@pytest.mark.parametrize(
    ("module", "name"),
    [(site, "findings"), (site, "scenario_page"), (site, "badge"), (downloads, "cells_csv")],
    ids=["findings", "scenario_page", "badge", "cells_csv"],
)
def test_a_scenario_that_raises_is_left_out_and_named(
    module: Any, name: str, records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raise_for(monkeypatch, module, name, lambda result, *_: result.scenario.name == "bad")

    pages, warnings = report(records)

    assert scenario_pages(pages) == {"scenario/good.html"}
    (warning,) = warnings
    assert "r1.jsonl" in warning
    assert "OverflowError" in warning


def test_a_history_that_raises_is_left_out_and_named(
    records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raise_for(monkeypatch, site, "benchmark_page", lambda one: one.project == "bad-project")

    pages, warnings = report(records)

    assert scenario_pages(pages) == {"scenario/bad.html", "scenario/good.html"}
    assert len([page for page in pages if page.startswith("history/")]) == 1
    (warning,) = warnings
    assert "bad-project" in warning


def test_a_race_whose_page_raises_is_left_out_and_named(
    records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raise_for(monkeypatch, site, "tune_page", lambda *_: True)

    pages, warnings = report(records)

    assert not any(page.startswith("tune/") for page in pages)
    assert len(warnings) == 1
    assert "tunes" in warnings[0]


def test_a_race_whose_analysis_raises_is_left_out_and_named(
    records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raise_for(monkeypatch, tunings, "analyse_tuning", lambda *_: True)

    pages, warnings = report(records)

    assert scenario_pages(pages) == {"scenario/bad.html", "scenario/good.html"}
    assert len(warnings) == 1
    assert "tunes" in warnings[0]


def test_a_run_whose_summary_raises_is_left_out_and_named(
    records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raise_for(monkeypatch, run_index, "series_of_run", lambda run, _: run.id == "r1")

    pages, warnings = report(records)

    assert scenario_pages(pages) == {"scenario/good.html"}
    assert len(warnings) == 1
    assert "r1.jsonl" in warnings[0]


def test_an_error_of_no_part_is_not_hidden(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raise_for(monkeypatch, site, "overview_page", lambda *_: True)

    with pytest.raises(OverflowError):
        report(records)


def test_a_document_that_raises_is_a_fault_of_its_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(name)

    def decode(lines: Any) -> str:
        text = b"".join(lines).decode()
        if text == "b":
            raise ZeroDivisionError
        return text

    found, faults = documents.read_all(tmp_path, decode, what="this document", fix="Delete it.")

    assert found == ["a"]
    assert [Path(fault.file).name for fault in faults] == ["b.json"]
