"""`report --only`: what was asked for by name, and nothing else."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from corebound.cli.app import app
from corebound.errors import InputError
from corebound.records import history_files
from corebound.report.inputs import SiteInputs
from corebound.workflow.report import select_content
from support.build import a_series
from support.report_sample import NOW, a_sample, a_serving_sample, sample_imports

EVERY = SiteInputs(
    now=NOW,
    records=(a_sample(), a_serving_sample()),
    series=tuple(a_series([1.0], scenario=name) for name in ("torchserve", "bench")),
    profiles=sample_imports(),
)


def test_without_names_all_is_kept() -> None:
    assert select_content(EVERY) is EVERY


def test_a_name_takes_the_runs_and_the_histories_of_it_and_no_imported_profile() -> None:
    kept = select_content(replace(EVERY, only=["torch*"]))

    assert [run.id for run, _ in kept.records] == ["served"]
    assert [series.scenario for series in kept.series] == ["torchserve"]
    assert not kept.profiles


def test_an_imported_profile_is_asked_for_by_its_own_name() -> None:
    kept = select_content(replace(EVERY, only=["NPU"]))

    assert [profile.name for profile in kept.profiles] == ["NPU"]
    assert not kept.records


def test_a_name_that_nothing_has_is_bad_input() -> None:
    with pytest.raises(InputError, match="has this name"):
        select_content(replace(EVERY, only=["nothing*"]))


def test_an_imported_project_is_asked_for_by_its_name() -> None:
    theirs = a_series([1.0], scenario="io.read", project="sunpy-benchmarks")
    every = replace(EVERY, series=(*EVERY.series, theirs))

    assert select_content(replace(every, only=["sunpy-benchmarks"])).series == [theirs]


def test_every_page_says_what_it_is_only_of_as_long_as_it_is(tmp_path: Path) -> None:
    all_series = [
        a_series([1e6] * 9, project="trees", scenario=name) for name in ("io.read", "io.size")
    ]
    history_files.keep("trees", all_series, tmp_path / "records")
    parts = ["report", "--records", str(tmp_path / "records"), "--out", str(tmp_path / "site")]

    def said() -> dict[str, bool]:
        site = tmp_path / "site"
        return {
            file.relative_to(site).as_posix(): "Only of io.re* and io.x" in file.read_text()
            for file in site.rglob("*.html")
        }

    done = CliRunner().invoke(app, [*parts, "--only", "io.re*", "--only", "io.x"])
    narrow = said()
    CliRunner().invoke(app, parts)

    assert done.exit_code == 0, done.output
    assert all(narrow.values())
    assert len(narrow) == 4
    assert len(said()) == 5
    assert not any(said().values())
