"""`corebound export`, read by the target tools: asv, pyperf and pyarrow; and imported again."""

import gzip
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyperf
import pytest
from asv.results import iter_results

from corebound.exchange.run_export import exported_cells
from corebound.records import history_files, jsonl
from corebound.records.history import Series
from support.commands import output_of
from support.repositories import git, write_asv_conf

SCENARIO = """\
schema: 1
name: hashing
title: SHA-256 of some text
question: How long does it take?
workload: hashing:setup
environment: host
matrix:
  binding: [none, one-cpu]
  threads: [default, 1]
  exclude:
    - {binding: one-cpu, threads: 1}
measure:
  iterations: 30
  relaunch_disturbed: 0
  launches: {min: 3, max: 3}
"""
WORKLOAD = """\
import hashlib

def setup():
    text = b"some text\\n" * 2000
    return lambda: hashlib.sha256(text).digest()
"""
# Of three launches: one that a busy host disturbs is left out where two others are not.
UNDISTURBED = {2, 3}


def tool(folder: Path, *arguments: str) -> str:
    """What a module of Python, such as asv, prints."""
    command = (sys.executable, "-m", *arguments)
    completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of two commits, each of them measured by corebound."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "hashing.yaml").write_text(SCENARIO)
    (folder / "hashing.py").write_text(WORKLOAD)
    (folder / ".gitignore").write_text("reports/\n__pycache__/\nresults/\nhtml/\n")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for subject in ("Begin", "Go on"):
        (folder / "news.txt").write_text(subject)
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", subject)
        output_of(folder, "run", "hashing.yaml", "--unlocked", "--json")
    write_asv_conf(
        folder,
        "hashing",
        environment_type="virtualenv",
        results_dir="results",
        html_dir="html",
        show_commit_url="https://example.org/",
    )
    return folder


@pytest.fixture(scope="module")
def medians_s(project: Path) -> dict[tuple[str, str], float]:
    """What corebound's own statistics say, by commit and cell."""
    found = {}
    for file in jsonl.files(project / "reports" / "records"):
        stored = jsonl.read(file)
        for one in exported_cells(stored.run, stored.launches):
            assert stored.run.commit is not None
            assert one.summary.median_ns is not None
            found[stored.run.commit.sha, one.cell.key] = one.summary.median_ns / 1e9
    assert len(found) == 2 * 3
    return found


@pytest.fixture(scope="module")
def results(project: Path) -> Path:
    output_of(project, "export", "asv", "--out", "results")
    return project / "results"


def commits(project: Path) -> list[str]:
    return git(project, "rev-list", "--reverse", "HEAD").split()


@pytest.mark.quick
def test_asv_reads_every_value_and_sample(
    results: Path, medians_s: dict[tuple[str, str], float]
) -> None:
    found: dict[tuple[str, str], float] = {}
    for result in iter_results(str(results)):
        params = result.get_result_params("hashing")
        values = result.get_result_value("hashing", params)
        samples = result.get_result_samples("hashing", params)
        stats = result.get_result_stats("hashing", params)
        keys = [
            f"binding={one[1:-1]},threads={rule[1:-1]}" for one in params[0] for rule in params[1]
        ]
        for key, value, own, about in zip(keys, values, samples, stats, strict=True):
            if key == "binding=one-cpu,threads=1":
                assert math.isnan(value)
                continue
            found[result.commit_hash, key] = value
            assert math.exp(sum(map(math.log, own)) / len(own)) == pytest.approx(value)
            assert len(own) in UNDISTURBED
            assert about["ci_99_a"] < value < about["ci_99_b"]
    assert found == pytest.approx(medians_s)


def test_asv_show_and_compare_print_the_values(project: Path, results: Path) -> None:
    first, second = commits(project)
    (machine,) = [file.parent.name for file in results.glob("*/machine.json")]

    output = tool(project, "asv", "show", "--machine", machine, first)
    compared = tool(project, "asv", "compare", "--machine", machine, first, second)

    assert "hashing" in output
    assert re.search(r"\bone-cpu\b.*\bn/a\b", output)
    assert compared.count("hashing(") == 4


def test_asv_publish_makes_graphs_of_both_commits(
    project: Path, results: Path, medians_s: dict[tuple[str, str], float]
) -> None:
    tool(project, "asv", "publish", "--no-pull")

    index = json.loads((project / "html" / "index.json").read_text())
    (graph,) = [
        file
        for file in (project / "html" / "graphs").rglob("hashing.json")
        if "summary" not in file.parts
    ]
    points = json.loads(graph.read_text())

    assert index["benchmarks"]["hashing"]["pretty_name"] == "SHA-256 of some text"
    assert set(index["revision_to_hash"].values()) == set(commits(project))
    assert [values[0] for _, values in points] == pytest.approx(
        [medians_s[sha, "binding=none,threads=default"] for sha in commits(project)], rel=1e-4
    )


def test_exported_asv_results_import_unchanged(
    project: Path, results: Path, medians_s: dict[tuple[str, str], float], tmp_path: Path
) -> None:
    document = json.loads(
        output_of(
            project, "import", "asv", "results", "--repo", ".", "--records", str(tmp_path), "--json"
        )
    )
    series, _ = history_files.read_all(tmp_path)

    assert document["commits_the_repository_does_not_have"] == 0
    assert by_commit(series, suffix=",environment=corebound-host") == pytest.approx(medians_s)
    assert {point.commit and point.commit.subject for one in series for point in one.points} == {
        "Begin",
        "Go on",
    }


def by_commit(series: tuple[Series, ...], *, suffix: str = "") -> dict[tuple[str, str], float]:
    """Figures in seconds, of points that have one."""
    return {
        (point.commit.sha, one.cell.removesuffix(suffix)): point.value / 1e9
        for one in series
        for point in one.points
        if point.commit is not None and point.value is not None
    }


@pytest.fixture(scope="module")
def suites(project: Path) -> list[str]:
    """A file of pyperf for each run, oldest first."""
    records = sorted((project / "reports" / "records").glob("*/*.jsonl"))
    names = []
    for number, file in enumerate(records):
        names.append(f"reports/{number}.json")
        output_of(project, "export", "pyperf", "--run", jsonl.read(file).run.id, "--out", names[-1])
    return names


def test_pyperf_reads_each_launch_as_a_run_with_its_warm_ups(
    project: Path, suites: list[str]
) -> None:
    (stored, _) = [
        jsonl.read(file) for file in sorted((project / "reports" / "records").glob("*/*.jsonl"))
    ]

    benchmark = pyperf.BenchmarkSuite.load(str(project / suites[0])).get_benchmark(
        "hashing[binding=none,threads=default]"
    )

    launches = [
        launch for launch in stored.launches if launch.cell.key == "binding=none,threads=default"
    ]
    walls = {launch.workers[0].wall_ns for launch in launches}
    recorded = {
        tuple(
            round(value * 1e9) for value in (*(warm for _, warm in run.warmups or ()), *run.values)
        )
        for run in benchmark.get_runs()
    }
    assert recorded <= walls
    assert len(recorded) in UNDISTURBED
    assert benchmark.get_unit() == "second"


def test_pyperf_shows_checks_and_compares_them(project: Path, suites: list[str]) -> None:
    shown = tool(project, "pyperf", "show", "--metadata", suites[0])
    assert "hashing[binding=none,threads=default]" in shown
    assert "Number of run" in tool(project, "pyperf", "stats", suites[0])
    compared = tool(project, "pyperf", "compare_to", "--table", *suites)
    assert "Benchmark" in compared or "not significant" in compared


def test_exported_pyperf_files_import_unchanged(
    project: Path, suites: list[str], medians_s: dict[tuple[str, str], float], tmp_path: Path
) -> None:
    for _ in range(2):
        document = json.loads(
            output_of(project, "import", "pyperf", *suites, "--records", str(tmp_path), "--json")
        )
    series, _ = history_files.read_all(tmp_path)

    assert (document["series"], document["points"], document["added"]) == (3, 6, 0)
    assert by_commit(series) == pytest.approx(medians_s)


def test_results_that_pyperf_measured_are_imported(tmp_path: Path) -> None:
    tool(
        tmp_path, "pyperf", "timeit", "--quiet", "--processes", "3",
        "--values", "2", "--loops", "1000",
        "--name", "summing", "-o", "made.json", "sum(range(1000))",
    )  # fmt: skip
    (tmp_path / "made.json.gz").write_bytes(gzip.compress((tmp_path / "made.json").read_bytes()))

    document = json.loads(
        output_of(tmp_path, "import", "pyperf", "made.json.gz", "--records", "r", "--json")
    )

    ((series,), _) = history_files.read_all(tmp_path / "r")
    oracle = pyperf.Benchmark.load(str(tmp_path / "made.json"))
    assert document["figures"] == 1
    assert (series.scenario, series.cell, series.unit) == ("summing", "default", "ns")
    assert len(series.points[0].launches) == 3
    # pyperf takes a mean of all values, corebound of each process's median.
    assert min(oracle.get_values()) * 1e9 <= (series.points[0].value or 0)
    assert (series.points[0].value or 0) <= max(oracle.get_values()) * 1e9


def latest(project: Path, medians_s: dict[tuple[str, str], float]) -> dict[str, float]:
    sha = commits(project)[-1]
    return {key: value * 1e9 for (own, key), value in medians_s.items() if own == sha}


def test_dashboards_get_the_latest_run(
    project: Path, medians_s: dict[tuple[str, str], float], tmp_path: Path
) -> None:
    expected = {f"hashing[{key}]": ns for key, ns in latest(project, medians_s).items()}

    output_of(project, "export", "bencher", "--out", str(tmp_path / "b.json"))
    output_of(project, "export", "github-action-benchmark", "--out", str(tmp_path / "g.json"))

    bencher: dict[str, Any] = json.loads((tmp_path / "b.json").read_text())
    action: list[dict[str, Any]] = json.loads((tmp_path / "g.json").read_text())
    assert {name: one["latency"]["value"] for name, one in bencher.items()} == pytest.approx(
        expected
    )
    assert all(
        one["latency"]["lower_value"] < one["latency"]["value"] < one["latency"]["upper_value"]
        for one in bencher.values()
    )
    assert {one["name"]: one["value"] for one in action} == pytest.approx(expected)
    assert {one["unit"] for one in action} == {"ns"}
