"""git runs without the variables of a hook; where it is not installed, the error says so."""

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from corebound import git
from corebound.asv_bridge.project import Project
from corebound.cli.app import main
from corebound.errors import HostError
from corebound.records.commits import origin
from corebound.records.run_record import Commit
from corebound.workflow import reproduce
from support.build import a_run, a_scenario

SAID = "git is not installed.\n  Install it: `apt-get install git`."


@pytest.fixture
def no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def test_a_command_reports_its_output_and_its_error(tmp_path: Path) -> None:
    created = git.run(tmp_path, "init", "--quiet")
    failed = git.run(tmp_path, "rev-parse", "--verify", "HEAD")

    assert created.succeeded
    assert git.run(tmp_path, "rev-parse", "--is-inside-work-tree").text == "true"
    assert not failed.succeeded
    assert failed.error == "fatal: Needed a single revision"


def test_a_query_that_fails_has_no_answer(tmp_path: Path) -> None:
    assert git.query(tmp_path, "rev-parse", "--show-toplevel") is None


def test_a_command_reads_its_input_and_the_variables_given(tmp_path: Path) -> None:
    folder = {"GIT_DIR": str(tmp_path)}
    git.run(tmp_path, "init", "--quiet", "--bare", environment=folder)

    result = git.run(tmp_path, "hash-object", "-w", "--stdin", stdin=b"hello\n", environment=folder)

    # The hash of `hello` and a newline in every git repository of SHA-1.
    assert result.text == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_a_hook_s_repository_is_not_the_folder_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")

    assert git.run(tmp_path, "init", "--quiet").succeeded
    assert (tmp_path / ".git").is_dir()


def test_a_command_that_takes_too_long_fails(tmp_path: Path) -> None:
    slow = git.run(tmp_path, "-c", "alias.slow=!sleep 60", "slow", timeout_s=0.2)

    assert not slow.succeeded
    assert slow.error == "it did not finish within 0 s"


@pytest.mark.usefixtures("no_git")
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


@pytest.mark.usefixtures("no_git")
def test_a_scenario_is_not_taken_out_of_the_commit_it_was_measured_at() -> None:
    scenario = a_scenario(workload="own:step")
    commit = Commit(sha="0" * 40, subject="s", committed_at="2026-01-02T00:00:00Z", dirty=False)
    before = a_run(scenarios=(scenario,), commit=commit)

    with ExitStack() as stack, pytest.raises(HostError, match="git is not installed"):
        reproduce.check_out(before, "s.yaml", scenario, stack)


@pytest.mark.usefixtures("no_git")
def test_a_clone_does_not_tell_where_it_is_from(tmp_path: Path) -> None:
    assert origin(tmp_path) is None


@pytest.mark.usefixtures("no_git")
def test_the_error_has_no_a_traceback(
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
