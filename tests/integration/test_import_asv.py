"""`corebound import asv` on real histories: every number matches what asv reads."""

import itertools
import json
import math
import tarfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.results import iter_results

from corebound.exchange.asv import project as asv_project
from corebound.records.history import HistoryPoint, Series
from support.repositories import git

pytestmark = pytest.mark.quick

# Commit, environment, benchmark, values of its parameters.
Key = tuple[str, str, str, tuple[str, ...]]

SHARED = Path(__file__).parents[3] / "shared" / "data" / "histories"


@pytest.fixture(params=["sunpy-benchmarks", "conda-benchmarks"])
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's folder, unpacked."""
    packed = SHARED / f"{request.param}.tar.xz"
    if not packed.is_file():
        pytest.skip(f"{packed.name} lies beside a checkout only where it was put there")
    folder = tmp_path_factory.mktemp("histories")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return folder / str(request.param)


def read(project: Path, repo: Path | None = None) -> asv_project.AsvResults:
    return asv_project.read(project, name=None, repo=repo, progress=lambda *_: None)


def as_asv_has_them(project: Path) -> dict[Key, tuple[Any, Any, Any]]:
    """Value, statistics and samples of every benchmark."""
    imported = {}
    for result in iter_results(str(project / "results")):
        for name in result.get_all_result_keys():
            params = result.get_result_params(name)
            combinations = list(itertools.product(*params))
            columns = (
                result.get_result_value(name, params),
                result.get_result_stats(name, params),
                result.get_result_samples(name, params),
            )
            for combination, *row in zip(combinations, *columns, strict=True):
                values = tuple(one.strip("'") for one in combination)
                imported[result.commit_hash, result.env_name, name, values] = tuple(row)
    return imported


def as_corebound_has_them(
    imported: asv_project.AsvResults,
) -> dict[Key, tuple[Series, HistoryPoint]]:
    keyed = {
        (point.commit.sha if point.commit else "", *named(one)): (one, point)
        for one in imported.series
        for point in one.points
    }
    assert len(keyed) == sum(len(one.points) for one in imported.series)
    return keyed


def named(series: Series) -> tuple[str, str, tuple[str, ...]]:
    """Environment, benchmark and the values of its parameters."""
    own, _, environment = series.cell.rpartition("environment=")
    values = (word.partition("=")[2] for word in own.split(",") if word)
    return environment, series.scenario, tuple(values)


def test_every_number_matches_what_asv_reads(project: Path) -> None:
    expected = as_asv_has_them(project)
    units = {name: about["unit"] for name, about in known_to_asv(project).items()}

    imported = as_corebound_has_them(read(project))

    assert imported.keys() == expected.keys()
    for key, (value, stats, samples) in expected.items():
        series, point = imported[key]
        # Of benchmarks that are no more, asv itself has forgotten the unit.
        unit = units.get(key[2], "seconds" if "time" in key[2] else "bytes")
        assert series.unit == ("ns" if unit == "seconds" else unit)
        scale = 1e9 if unit == "seconds" else 1.0
        if value is None or math.isnan(value) or value <= 0:
            assert (point.value, point.bounds, point.launches) == (None, None, ())
            assert point.missing is not None
            continue
        assert point.value == pytest.approx(value * scale, rel=1e-12)
        assert point.missing is None
        assert point.launches == pytest.approx([one * scale for one in samples or ()], rel=1e-12)
        ends = [(stats or {}).get(name, math.nan) for name in ("ci_99_a", "ci_99_b")]
        bounds = tuple(end * scale for end in ends) if all(map(math.isfinite, ends)) else None
        assert point.bounds == (bounds and pytest.approx(bounds, rel=1e-12))


def known_to_asv(project: Path) -> dict[str, dict[str, Any]]:
    configuration = Config.load(str(project / "asv.conf.json"))
    configuration.results_dir = str(project / "results")
    return dict(Benchmarks.load(configuration))


def test_a_repository_gives_subjects_and_dates_of_its_commits(
    project: Path, tmp_path: Path
) -> None:
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "Make <it> faster\n\nBody")
    sha = git(tmp_path, "rev-parse", "HEAD").strip()
    one = next((project / "results").glob("*/*-*.json"))
    hash_then = json.loads(one.read_text())["commit_hash"]
    one.write_text(one.read_text().replace(hash_then, sha))

    imported = read(project, tmp_path)

    commits = {point.commit for series in imported.series for point in series.points}
    described = [commit for commit in commits if commit and commit.sha == sha]
    when = git(tmp_path, "show", "--no-patch", "--format=%ct")
    assert [commit.subject for commit in described] == ["Make <it> faster"]
    assert [datetime.fromisoformat(commit.committed_at).timestamp() for commit in described] == [
        float(when)
    ]
    assert imported.unknown == len({commit.sha for commit in commits if commit}) - 1
