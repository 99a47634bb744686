"""Environments are made once, found by content, and made again if left half made."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from corebound.errors import InputError, LaunchError
from corebound.launch import environment


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COREBOUND_CACHE", str(tmp_path / "cache"))
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "bare.txt").write_text("# nothing but the interpreter\n")
    return tmp_path


def test_an_environment_is_made_once_and_found_by_the_content_of_its_file(suite: Path) -> None:
    said: list[str] = []
    assert environment.find("bare", suite) is None

    made = environment.make("bare", suite, said.append)

    assert said
    assert made.python == environment.python_of("bare", suite)
    assert any(package.startswith("pip==") for package in made.lock.packages)
    assert subprocess.run((made.python, "-c", "pass"), check=False).returncode == 0
    said.clear()
    assert environment.make("bare", suite, said.append) == made
    assert said == []

    (suite / "environments" / "bare.txt").write_text("# other content\n")
    assert environment.find("bare", suite) is None


def test_one_that_was_left_half_made_is_none_and_is_made_again(suite: Path) -> None:
    made = environment.make("bare", suite, lambda _what: None)
    marker = made.python.parents[1] / environment.MARKER
    # Its marker was cut short, or was never written, or is another program's.
    for left in ("", '{"python": "3.11', "[]", "{}", None):
        if left is None:
            marker.unlink()
        else:
            marker.write_text(left)
        assert environment.find("bare", suite) is None, left
    made.python.unlink()

    assert environment.make("bare", suite, lambda _what: None) == made


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
