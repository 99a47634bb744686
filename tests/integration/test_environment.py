"""Environments are made once, found by content, and made again if left half made."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from corebound.errors import InputError, LaunchError
from corebound.launch import environment
from corebound.launch.environment import Environment


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where environments are kept: nobody else's, and empty at first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COREBOUND_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return a_suite(tmp_path)


def a_suite(folder: Path) -> Path:
    (folder / "environments").mkdir()
    (folder / "environments" / "bare.txt").write_text("# nothing but the interpreter\n")
    return folder


# What was found before it was made, what was said meanwhile, and what was made.
Made = tuple[Environment | None, list[str], Environment]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The bare environment, made once: it takes seconds."""
    suite, said = a_suite(tmp_path_factory.mktemp("suite")), list[str]()
    return environment.find("bare", suite), said, environment.make("bare", suite, said.append)


def test_an_environment_is_made_once_and_found_by_the_content_of_its_file(
    suite: Path, made: Made
) -> None:
    before, said, bare = made

    assert before is None
    assert said
    assert bare.python == environment.python_of("bare", suite)
    assert any(package.startswith("pip==") for package in bare.lock.packages)
    assert subprocess.run((bare.python, "-c", "pass"), check=False).returncode == 0
    said.clear()
    assert environment.make("bare", suite, said.append) == bare
    assert said == []

    (suite / "environments" / "bare.txt").write_text("# other content\n")
    assert environment.find("bare", suite) is None


def test_one_that_was_left_half_made_is_none_and_is_made_again(suite: Path, made: Made) -> None:
    _, _, bare = made
    marker = bare.python.parents[1] / environment.MARKER
    # Its marker was cut short, or was never written, or is another program's.
    for left in ("", '{"python": "3.11', "[]", "{}", None):
        if left is None:
            marker.unlink()
        else:
            marker.write_text(left)
        assert environment.find("bare", suite) is None, left
    bare.python.unlink()

    assert environment.make("bare", suite, lambda _what: None) == bare


def test_packages_that_cannot_be_installed_are_told_with_pips_own_words(suite: Path) -> None:
    (suite / "environments" / "bad.txt").write_text("./no-such-folder-here\n")

    with pytest.raises(LaunchError, match="no-such-folder-here"):
        environment.make("bad", suite, lambda _what: None)

    assert environment.find("bad", suite) is None


def test_an_environment_of_no_file_names_those_there_are(suite: Path) -> None:
    with pytest.raises(InputError, match="bare"):
        environment.find("brae", suite)


def test_the_hosts_own_python_needs_no_making(suite: Path) -> None:
    found = environment.find("host", suite)

    assert found is not None
    assert any(package.startswith("corebound==") for package in found.lock.packages)
