"""What cannot be read or analysed is named, and costs the site nothing else."""

import shutil
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
from support.tuning import BOUND, DEFAULT, ONE_CPU, ONE_THREAD, a_tuned_run


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of a scenario each, the histories of two projects, and a race."""
    folder = tmp_path_factory.mktemp("faulty") / "records"
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
    run, of_race = a_tuned_run({DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 8.0, ONE_CPU: 15.0})
    write_records(documents.tunes_folder(folder), run, *of_race)
    return folder


def report(made: Path, folder: Path) -> tuple[set[str], list[str]]:
    """The pages of the site of a copy of these records, and the warnings."""
    warnings: list[str] = []
    out, records = folder / "site", folder / "records"
    shutil.copytree(made, records, ignore=shutil.ignore_patterns("cache"))
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


def of_bad_scenario(result: Any, *_: Any) -> bool:
    return bool(result.scenario.name == "bad")


GOOD, BOTH = {"scenario/good.html"}, {"scenario/good.html", "scenario/bad.html"}


@pytest.mark.parametrize(
    ("module", "name", "is_bad", "scenarios", "named"),
    [
        *(
            (module, name, of_bad_scenario, GOOD, "r1.jsonl")
            for module, name in (
                (site, "findings"), (site, "scenario_page"), (site, "badge"),
                (downloads, "cells_csv"),
            )
        ),
        (run_index, "series_of_run", lambda run, _: run.id == "r1", GOOD, "r1.jsonl"),
        (site, "benchmark_page", lambda one: one.project == "bad-project", BOTH, "bad-project"),
        (site, "tune_page", lambda *_: True, BOTH, "tunes"),
        (tunings, "analyse_tuning", lambda *_: True, BOTH, "tunes"),
    ],
)  # fmt: skip
def test_a_part_that_raises_is_left_out_and_named(
    module: Any,
    name: str,
    is_bad: Callable[..., bool],
    scenarios: set[str],
    named: str,
    *,
    records: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raise_for(monkeypatch, module, name, is_bad)

    pages, warnings = report(records, tmp_path)

    assert {page for page in pages if page.startswith("scenario/")} == scenarios
    histories = len([page for page in pages if page.startswith("history/")])
    assert histories == (1 if named == "bad-project" else 2)
    assert any(page.startswith("tune/") for page in pages) == (named != "tunes")
    (warning,) = warnings
    assert named in warning
    assert "OverflowError" in warning


def test_an_error_of_no_part_is_not_hidden(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raise_for(monkeypatch, site, "overview_page", lambda *_: True)

    with pytest.raises(OverflowError):
        report(records, tmp_path)


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
