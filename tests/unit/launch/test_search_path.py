"""Where a scenario's environments and modules are searched, and interpreters that exist."""

import sys
from pathlib import Path

import pytest

from corebound.errors import InputError
from corebound.launch import environments
from corebound.launch.search_path import folders_upward, module_folders
from support.known import known


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a package in `src` and a scenario's folder two levels down."""
    for folder in (".git", "src", "environments", "bench/cpu"):
        (tmp_path / "repository" / folder).mkdir(parents=True)
    return tmp_path / "repository"


def test_folders_are_searched_up_to_the_root_of_the_repository(project: Path) -> None:
    bench = project / "bench"

    assert folders_upward(bench / "cpu") == (bench / "cpu", bench, project)
    assert module_folders(bench / "cpu") == (bench, project, project / "src")


def test_an_environment_is_found_above_the_scenario(project: Path) -> None:
    file = project / "environments" / "mine.txt"
    file.write_text("six==1.17.0\n")

    assert environments.requirements("mine", project / "bench" / "cpu") == file


def test_a_misspelt_environment_is_named(project: Path) -> None:
    with pytest.raises(InputError, match="Did you mean `pytorch`"):
        environments.requirements("torch", project)


def test_an_existing_interpreter_is_described_with_its_packages(project: Path) -> None:
    (project / "bin").mkdir()
    (project / "bin" / "python").symlink_to(sys.executable)

    found = known(environments.find("python:../..", project / "bench" / "cpu"))

    assert found.python == project / "bin" / "python"
    assert found.lock.python.startswith(f"{sys.version_info.major}.")
    assert environments.find("python:../../bin/python", project / "bench" / "cpu") is not None


@pytest.mark.parametrize("version", ["2.7.18", "3.9.18"])
def test_an_interpreter_that_is_too_old_for_the_worker_is_refused(
    project: Path, version: str
) -> None:
    python = project / "python"
    python.write_text(f"#!/bin/sh\necho '[\"{version}\", []]'\n")
    python.chmod(0o755)

    with pytest.raises(InputError, match=f"Python {version} is too old"):
        environments.find("python:python", project)


def test_conda_environments_are_found_by_name(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = project / "envs" / "study"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setenv("CONDA_ENVS_PATH", str(project / "envs"))

    found = known(environments.find("conda:study", project))

    assert found.python == prefix / "bin" / "python"


@pytest.mark.parametrize("name", ["python:.venv/bin/python", "conda:absent"])
def test_an_interpreter_that_is_not_here_is_a_reason_to_skip(project: Path, name: str) -> None:
    assert environments.find(name, project) is None

    reason = environments.reason_not_made(name, project)

    assert reason.cause == "environment"
    assert name.partition(":")[2] in reason.what
