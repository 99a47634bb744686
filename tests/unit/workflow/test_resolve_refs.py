"""Names of runs and commits, as typed, and what they resolve to."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from corebound.cli.app import app
from corebound.errors import InputError
from corebound.records import history_files
from corebound.records.history import HistoryPoints, Series
from corebound.workflow import resolve_refs
from corebound.workflow.resolve_refs import resolve_commits, resolve_revision
from support.build import a_point, a_series
from support.known import known
from support.repositories import git


def a_repository(folder: Path, *tags: str) -> tuple[str, ...]:
    """A repository with a commit for each of these tags; their hashes."""
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for tag in tags:
        git(folder, "commit", "--quiet", "--allow-empty", "--message", tag)
        git(folder, "tag", "--annotate", tag, "--message", tag)
    return tuple(git(folder, "rev-parse", f"{tag}^{{commit}}").strip() for tag in tags)


@pytest.mark.parametrize("name", ["v2.0", "main", "HEAD", "main~0"])
def test_a_revision_resolves_to_the_commit_that_git_names(tmp_path: Path, name: str) -> None:
    _, last = a_repository(tmp_path, "v1.0", "v2.0")

    assert resolve_revision(name, tmp_path) == last


@pytest.mark.parametrize("name", ["v9", "", "--all", "two words", "a\0b"])
def test_an_unknown_revision_resolves_to_none(tmp_path: Path, name: str) -> None:
    a_repository(tmp_path, "v1.0")

    assert resolve_revision(name, tmp_path) is None


def measured(*shas: str) -> Series:
    """An imported history of these commits."""
    commit = known(a_point(day=1).commit)
    points = (
        replace(a_point(1e6, day=day), commit=replace(commit, sha=sha))
        for day, sha in enumerate(shas)
    )
    return a_series([], project="trees", points=HistoryPoints.of(points))


def test_tags_resolve_to_commits_of_an_imported_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shas = a_repository(tmp_path, "v1.0", "v2.0")
    monkeypatch.chdir(tmp_path)

    series = [measured(*shas)]

    assert resolve_commits("v1.0", "v2.0", series) == ("trees", *shas)
    assert resolve_commits(shas[0][:8], "main", series) == ("trees", *shas)


def test_the_error_for_an_unmeasured_release_names_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, last = a_repository(tmp_path, "v1.0", "v2.0")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InputError, match="was not measured") as caught:
        resolve_commits("v1.0", "v2.0", [measured(first)])

    assert (caught.value.where, last[:10] in caught.value.what) == ("v2.0", True)
    assert "trees" in caught.value.what


def test_git_resolves_each_name_once_for_all_projects(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(resolve_refs, "resolve_revision", asked.append)
    several = [replace(measured("a" * 40), project=name) for name in ("trees", "woods", "fields")]

    assert resolve_commits("v1.0", "v2.0", several) is None
    with pytest.raises(InputError, match="no measured commit"):
        resolve_commits("aaaa", "v3.0", several)

    assert asked == ["v1.0", "v2.0", "v3.0"]


@pytest.mark.parametrize("words", [("compare",), ("report",)])
def test_compare_and_report_accept_tags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    shas = a_repository(tmp_path, "v1.0", "v2.0")
    history_files.keep("trees", [measured(*shas)], tmp_path / "records")
    monkeypatch.chdir(tmp_path)
    asked = {"compare": ["v1.0", "v2.0"], "report": ["--compare", "v1.0..v2.0", "--out", "site"]}

    done = CliRunner().invoke(app, [*words, *asked[words[0]], "--records", "records"])

    assert done.exit_code == 0, done.output


def test_an_unknown_name_is_an_error_that_says_what_was_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_repository(tmp_path, "v1.0")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "records").mkdir()

    unknown, unmeasured = (
        CliRunner().invoke(app, ["compare", name, "x", "--records", "records"]).exception
        for name in ("v9", "v1.0")
    )

    assert isinstance(unknown, InputError)
    assert "`v9`" in unknown.what
    assert isinstance(unmeasured, InputError)
    assert "no run measured" in unmeasured.what
