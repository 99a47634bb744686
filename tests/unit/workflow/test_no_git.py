"""Where git is not installed, what needs it says so and how to mend that."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from corebound.asv_bridge.project import Project
from corebound.cli.app import main
from corebound.errors import HostError
from corebound.exchange.git_history import origin
from corebound.records.run_record import Commit
from corebound.workflow import prepare
from corebound.workflow.publish.branch import Branch, publish
from corebound.workflow.publish.folder import Site
from support.build import a_run, a_scenario

SAID = "git is not installed.\n  Install it: `apt-get install git`."


@pytest.fixture(autouse=True)
def no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def test_a_site_is_not_published_to_a_branch(tmp_path: Path) -> None:
    site = Site(folder=tmp_path, at="2026-01-02T03:04:05Z")

    with pytest.raises(HostError) as caught:
        publish(site, Branch(repository=tmp_path, name="gh-pages", remote=None, squash=False))

    assert str(caught.value) == f"{tmp_path}: {SAID}"


def test_no_commit_of_a_project_is_found(tmp_path: Path) -> None:
    project = Project(
        name="p",
        file=tmp_path / "asv.conf.json",
        git=tmp_path,
        environments=tmp_path,
        recipe="",
        checked_out="HEAD",
    )

    with pytest.raises(HostError, match="git is not installed"):
        project.commit("HEAD")


def test_a_scenario_is_not_taken_out_of_the_commit_it_was_measured_at() -> None:
    scenario = a_scenario(workload="own:step")
    commit = Commit(sha="0" * 40, subject="s", committed_at="2026-01-02T00:00:00Z", dirty=False)
    before = a_run(scenarios=(scenario,), commit=commit)

    with ExitStack() as stack, pytest.raises(HostError, match="git is not installed"):
        prepare.checked_out(before, "s.yaml", scenario, stack)


def test_a_clone_does_not_tell_where_it_is_from(tmp_path: Path) -> None:
    assert origin(tmp_path) is None


def test_it_is_told_to_people_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").touch()
    words = ("publish", "--site", str(site), "--branch", "gh", "--repo", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["corebound", *words])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == HostError.exit_code
    assert capsys.readouterr().err == f"{tmp_path}: {SAID}\n"
