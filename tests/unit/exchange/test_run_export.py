"""Exports of a run to CSV, Parquet, asv, pyperf, Bencher and github-action-benchmark."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from corebound.cli.app import app
from corebound.errors import InputError
from corebound.exchange import pyperf, run_export
from corebound.exchange.asv import export as asv_export
from corebound.exchange.asv import results
from corebound.exchange.run_export import ExportedCell, exported_cells
from corebound.records.launch_record import Launch
from corebound.records.run_record import Commit, EnvironmentLock, Run
from corebound.scenario.matrix import expand
from support.build import a_launch, a_machine, a_run, a_scenario, a_worker, write_records
from support.texts import in_order

COMMIT = Commit(
    sha="c" * 40, subject="Go on", committed_at="2026-01-01T10:00:00+02:00", dirty=False
)
# `date -u -d 2026-01-01T08:00:00Z +%s`, in milliseconds.
COMMITTED_MS = 1_767_254_400_000
SCENARIO = a_scenario(
    name="matmul", matrix={"binding": ["none", "one-cpu"], "threads": ["default", 1]}
)
CELLS = expand(SCENARIO, "matmul.yaml", None)


def a_night(
    *launches: Launch, commit: Commit | None = COMMIT, run_id: str = "r1", day: int = 2
) -> tuple[Run, tuple[Launch, ...]]:
    run = a_run(
        scenarios=(SCENARIO,), run_id=run_id, commit=commit,
        started_at=f"2026-01-{day:02}T03:04:05Z",
    )  # fmt: skip
    return run, launches


def took(milliseconds: int, *, cell: int = 0, block: int = 0, warm: int | None = None) -> Launch:
    """A launch of thirty iterations that took so long, the first ones so long as `warm`."""
    walls: tuple[int, ...] = (milliseconds * 1_000_000,) * 30
    if warm is not None:
        walls = (warm * 1_000_000,) * 15 + walls
    return a_launch(cell=CELLS[cell], block=block, workers=(a_worker(wall_ns=walls),))


def cells(night: tuple[Run, tuple[Launch, ...]]) -> tuple[ExportedCell, ...]:
    return tuple(exported_cells(*night))


def asv_files(*nights: tuple[Run, tuple[Launch, ...]], **benchmarks: Any) -> dict[str, Any]:
    own = [cell for night in nights for cell in cells(night)]
    return {name: json.loads(text) for name, text in asv_export.documents(own, benchmarks).items()}


def test_a_launch_is_a_sample_in_seconds_with_bounds_of_99_percent() -> None:
    files = asv_files(a_night(took(1), took(4, block=1), took(2, block=2)))

    host = a_machine().id
    document = files[f"{host}/cccccccc-corebound-{CELLS[0].environment}.json"]
    row = dict(zip(document["result_columns"], document["results"]["matmul"], strict=True))
    assert document["date"] == COMMITTED_MS
    assert row["samples"][0] == [0.001, 0.004, 0.002]
    # The geometric mean of 1, 4 and 2.
    assert row["result"][0] == pytest.approx(0.002)
    # Student's t of 99 % with two degrees of freedom is 9.925; ln 2 / sqrt(3) the error.
    reach = math.exp(9.925 * math.log(2) / math.sqrt(3))
    assert row["stats_ci_99_a"][0] == pytest.approx(0.002 / reach, rel=1e-3)
    assert row["stats_ci_99_b"][0] == pytest.approx(0.002 * reach, rel=1e-3)


def test_asv_s_results_mark_failed_and_skipped_cells() -> None:
    failed = a_launch(cell=CELLS[1], status="failed", reason="no memory")
    skipped = a_launch(cell=CELLS[2], status="skipped", reason="too small")
    files = asv_files(a_night(took(1), took(1, block=1), failed, skipped))

    (document,) = [one for one in files.values() if "results" in one]
    ok, gone, none, absent = document["results"]["matmul"][0]
    assert (ok, gone) == (pytest.approx(0.001), None)
    assert math.isnan(none)
    assert math.isnan(absent)


def test_axes_become_parameters_in_order() -> None:
    files = asv_files(a_night(*(took(1, cell=cell) for cell in (3, 1, 0, 2))))

    about = files["benchmarks.json"]["matmul"]
    assert about["param_names"] == ["binding", "threads"]
    assert about["params"] == [["'none'", "'one-cpu'"], ["'default'", "'1'"]]


def test_an_incomplete_matrix_becomes_one_parameter() -> None:
    many = [replace(CELLS[0], axes=(("a", str(number)), ("b", str(number)))) for number in range(6)]
    files = asv_files(a_night(*(a_launch(cell=cell) for cell in many)))

    about = files["benchmarks.json"]["matmul"]
    assert about["param_names"] == ["cell"]
    assert about["params"] == [[f"'a={number},b={number}'" for number in range(6)]]
    (document,) = [one for one in files.values() if "results" in one]
    assert document["results"]["matmul"][0] == pytest.approx([0.001] * 6)


def test_asv_s_own_benchmarks_and_its_version_are_kept() -> None:
    files = asv_files(a_night(took(1)), other={"name": "other"})
    scenario = a_scenario(name="version")
    run = replace(a_night()[0], scenarios=a_run(scenarios=(scenario,)).scenarios)
    odd = asv_files((run, (a_launch(cell=replace(CELLS[0], scenario="version")),)))

    assert files["benchmarks.json"].keys() == {"other", "matmul", "version"}
    # A scenario of that name does not take its place.
    assert odd["benchmarks.json"]["version"] == 2
    assert odd["benchmarks.json"]["Version"]["name"] == "Version"
    (document,) = [one for one in odd.values() if "results" in one]
    assert document["results"].keys() == {"Version"}


def test_of_two_runs_of_one_commit_asv_gets_the_later() -> None:
    files = asv_files(a_night(took(5), took(7, cell=1)), a_night(took(6), run_id="r2", day=3))

    (document,) = [one for one in files.values() if "results" in one]
    assert document["results"]["matmul"][0][:2] == pytest.approx([0.006, 0.007])


def test_results_of_an_older_scenario_are_not_mixed_in() -> None:
    before = a_night(took(5), took(7, cell=1))
    run, launches = a_night(took(6), run_id="r2", day=3)
    edited = replace(run, scenarios=tuple(replace(one, sha256="1" * 64) for one in run.scenarios))

    (document,) = [
        one for one in asv_files(before, (edited, launches)).values() if "results" in one
    ]

    values, _, version, *_ = document["results"]["matmul"]
    assert (values[0], version) == (pytest.approx(0.006), "1" * 64)
    assert math.isnan(values[1])


def test_the_asv_reader_reads_the_export() -> None:
    files = asv_export.documents(list(cells(a_night(took(1), took(2, block=1)))), {})

    (text,) = [text for name, text in files.items() if "corebound-" in name]

    file = results.read(text.encode())
    ((name, row),) = file.results.items()
    assert file.row_of(name, row)[-1][0] == [0.001, 0.002]


def test_pyperf_gets_warm_ups_separately() -> None:
    night = a_night(took(1, warm=50), took(1, block=1))

    document = json.loads(pyperf.suite(cells(night)))

    warmed, steady = document["benchmarks"][0]["runs"]
    assert [value for _, value in warmed["warmups"]] == [0.05] * 15
    assert warmed["values"] == [0.001] * 30
    assert "warmups" not in steady


def test_pyperf_metadata_has_no_empty_text_and_no_lines() -> None:
    odd = replace(COMMIT, subject="one\ntwo", sha="c" * 40)

    document = json.loads(pyperf.suite(cells(a_night(took(1), commit=odd))))

    assert document["metadata"]["commit_subject"] == "one two"
    assert all(value != "" for value in document["metadata"].values())


def test_tables_have_a_row_for_each_launch_of_any_status() -> None:
    made = cells(a_night(took(1), a_launch(cell=CELLS[1], status="failed", reason="=1+1")))

    rows = list(csv.DictReader(io.StringIO(run_export.as_csv(made))))
    typed = pyarrow.parquet.read_table(io.BytesIO(run_export.as_parquet(made, "out"))).to_pylist()

    assert [(row["status"], row["median_ns"], row["axis_threads"]) for row in rows] == [
        ("ok", "1000000.0", "default"),
        ("failed", "", "1"),
    ]
    # A spreadsheet would have computed it.
    assert rows[1]["reason"] == "'=1+1"
    assert [(row["median_ns"], row["block"], row["settled"]) for row in typed] == [
        (1e6, 0, True),
        (None, 0, None),
    ]


def kept(folder: Path, *nights: tuple[Run, tuple[Launch, ...]]) -> Path:
    for run, launches in nights:
        write_records(folder, run, *launches)
    return folder


def export(records: Path, *words: str) -> tuple[int, str]:
    runner = CliRunner()
    try:
        done = runner.invoke(
            app, ["export", *words, "--records", str(records)], catch_exceptions=False
        )
    except InputError as error:
        return error.exit_code, str(error)
    return done.exit_code, done.output


def test_asv_exports_skip_and_report_runs_without_a_commit(tmp_path: Path) -> None:
    records = kept(
        tmp_path / "r",
        a_night(took(1)),
        a_night(took(1), commit=None, run_id="r2"),
        a_night(took(1), commit=replace(COMMIT, dirty=True), run_id="r3"),
    )

    code, said = export(records, "asv", "--out", str(tmp_path / "results"))

    assert code == 0
    assert in_order(said, "run r2: ", "no commit")
    assert in_order(said, "run r3: ", "uncommitted changes")


def test_asv_exports_skip_uncommitted_changes_and_tables_name_their_hash(tmp_path: Path) -> None:
    changed = replace(COMMIT, dirty=True, tree="d" * 40)
    lock = EnvironmentLock(
        name=CELLS[0].environment, sha256="", python="3.11.2", packages=(), commit=changed
    )
    run, launches = a_night(took(1))
    # The suite's own repository is clean; the project is elsewhere.
    records = kept(tmp_path / "r", (replace(run, environments=(lock,)), launches))

    code, said = export(records, "asv", "--out", str(tmp_path / "results"))
    export(records, "csv", "--out", str(tmp_path / "launches.csv"))

    assert (code, "commit without changes" in said) == (2, True)
    (row,) = csv.DictReader((tmp_path / "launches.csv").read_text().splitlines())
    assert (row["commit"], row["dirty"], row["tree"]) == (COMMIT.sha, "True", "d" * 40)


@pytest.mark.parametrize(
    ("nights", "words", "says"),
    [
        ((), ("csv",), "no runs."),
        ((), ("csv", "--run", "x"), "no run x."),
        ((a_night(took(1), commit=None),), ("asv",), "commit without changes"),
    ],
)
def test_without_a_run_or_a_commit_nothing_is_exported(
    tmp_path: Path,
    nights: tuple[tuple[Run, tuple[Launch, ...]], ...],
    words: tuple[str, ...],
    says: str,
) -> None:
    code, said = export(kept(tmp_path / "r", *nights), *words, "--out", str(tmp_path / "out"))

    assert (code, says in said) == (2, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format_", ["pyperf", "bencher", "github-action-benchmark"])
def test_cells_without_a_value_are_reported_and_skipped(tmp_path: Path, format_: str) -> None:
    failed = a_launch(cell=CELLS[1], status="failed", reason="no memory")
    records = kept(tmp_path / "r", a_night(took(1), failed))

    code, said = export(records, format_, "--out", str(tmp_path / "out.json"))

    assert code == 0
    assert in_order(said, "threads=1]: ", "failed: no memory")
    assert "threads=1" not in (tmp_path / "out.json").read_text()
