"""asv projects as files: result files, result trees and `corebound import asv` on them."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from corebound.cli.app import app
from corebound.exchange.asv import project
from corebound.exchange.asv.environments import MergeOptions
from corebound.records.history import HistoryPoints, Series

SHA = "a" * 40
TIME = {"time_it": {"unit": "seconds", "param_names": []}}
# 2021-11-19T22:48:15Z by `date -u -d @1637362095`.
DATE_MS = 1_637_362_095_000
COLUMNS = [
    "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b",
    "stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile",
]  # fmt: skip


def result_file(results: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A result file of version 2."""
    document = {
        "commit_hash": SHA,
        "env_name": "virtualenv-py3.11",
        "date": DATE_MS,
        "params": {"machine": "box", "cpu": "a CPU", "os": "Linux", "python": "3.11"},
        "python": "3.11",
        "requirements": {},
        "env_vars": {},
        "result_columns": COLUMNS,
        "results": results,
        "durations": {},
        "version": 2,
    }
    return document | changes


def result_tree(
    folder: Path, *files: dict[str, Any], benchmarks: dict[str, Any] | None = None
) -> Path:
    """A project's folder whose results are these files."""
    machine = folder / "results" / "box"
    machine.mkdir(parents=True)
    (folder / "asv.conf.json").write_text(
        '{\n  // a comment, as asv allows\n  "version": 1, "project": "trees",\n}'
    )
    for number, document in enumerate(files):
        (machine / f"{number:08}-env.json").write_text(json.dumps(document))
    if benchmarks is not None:
        (folder / "results" / "benchmarks.json").write_text(json.dumps(benchmarks))
    return folder


def a_tree(folder: Path, *, benchmarks: dict[str, Any] | None = TIME) -> Path:
    """A project of one result of one benchmark, which `benchmarks.json` describes."""
    return result_tree(folder, result_file({"time_it": [[1.0], []]}), benchmarks=benchmarks)


def only_points(project_read: project.AsvResults) -> HistoryPoints:
    """Those of the one series there is."""
    (series,) = project_read.series
    return series.points


def by_cell(project_read: project.AsvResults) -> dict[str, Series]:
    """Series by their parameters."""
    return {
        one.cell.removesuffix(",environment=virtualenv-py3.11"): one for one in project_read.series
    }


def read_project(
    folder: Path,
    repo: Path | None = None,
    machine: str | None = None,
    under_test: tuple[str, ...] = (),
) -> project.AsvResults:
    """All that is measured there."""
    across = MergeOptions(machine=machine, under_test=under_test)
    return project.read(
        folder, name=None, repo=repo, progress=lambda _done, _of: None, merge_options=across
    )


def import_asv(folder: Path, *options: str) -> Result:
    """What the command says of an import; its records are kept in the folder, or by an option."""
    records = str(folder / "records")
    result = CliRunner().invoke(app, ["import", "asv", str(folder), "--records", records, *options])
    assert result.exit_code == 0, result.output
    return result
