"""The fixture `corebound` in real test sessions of a small git repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support.commands import isolation

# Other tests beside it would disturb most launches, and no check would be conclusive.
pytestmark = pytest.mark.measures

MODULE = """\
import hashlib

TEXT = b"some text\\n" * 20_000

def digest():
    for _ in range({times}):
        hashlib.sha256(TEXT).digest()

def less():
    hashlib.md5(TEXT[:1000]).digest()
"""
TEST = """\
from parsing import work

def test_speed(corebound):
    corebound.check(work.digest, baseline="main", margin=0.03, launches=(3, 6), budget_s=40)
"""


@pytest.fixture
def repository(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in `src`, committed on `main`."""
    for name, value in isolation(pytester.path).items():
        monkeypatch.setenv(name, value)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    package = pytester.path / "src" / "parsing"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "work.py").write_text(MODULE.format(times=4))
    pytester.makepyfile(test_speed=TEST)
    pytester.makeini("[pytest]\npythonpath = src\naddopts = -p no:cacheprovider")
    commit(pytester.path)
    return package / "work.py"


def commit(folder: Path) -> None:
    for command in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "."),
        ("commit", "--quiet", "--message=first"),
    ):
        subprocess.run(("git", *command), cwd=folder, check=True)


@pytest.mark.quick
def test_a_planted_slow_down_fails_with_its_interval(
    pytester: pytest.Pytester, repository: Path
) -> None:
    repository.write_text(MODULE.format(times=6))

    result = pytester.runpytest_subprocess()

    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [r".*digest@main → digest: 1\.\d+× slower \(95 % CI 1\.\d+–\d\.\d+\).*; the margin is 3.0%"]
    )
    assert "Traceback" not in result.stdout.str()


def test_no_change_passes_and_is_in_the_summary(
    pytester: pytest.Pytester, repository: Path
) -> None:
    result = pytester.runpytest_subprocess()

    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"=+ corebound =+", r"test_speed.py::test_speed: digest@main → "])


def test_another_function_can_be_the_baseline(pytester: pytest.Pytester, repository: Path) -> None:
    pytester.makepyfile(
        test_speed="from parsing import work\n"
        "def test_faster(corebound):\n"
        "    result = corebound.check(work.less, baseline=work.digest, launches=(3, 4))\n"
        "    assert result.verdict == 'faster'\n"
        "def test_slower(corebound):\n"
        "    corebound.check(work.digest, baseline=lambda: work.less(), launches=(3, 4))\n"
    )

    result = pytester.runpytest_subprocess()

    result.assert_outcomes(passed=1, failed=1)


def test_what_cannot_be_checked_says_why(pytester: pytest.Pytester, repository: Path) -> None:
    repository.write_text(MODULE.format(times=4) + "\ndef added(): pass\n")
    pytester.makepyfile(
        test_speed="from parsing import work\n"
        "def test_revision(corebound):\n"
        "    corebound.check(work.digest, baseline='nowhere')\n"
        "def test_new_function(corebound):\n"
        "    corebound.check(work.added, baseline='main')\n"
        "def test_lambda(corebound):\n"
        "    corebound.check(lambda: 1, baseline='main')\n"
        "def test_installed(corebound):\n"
        "    import json\n"
        "    corebound.check(json.dumps, baseline='main')\n"
    )

    result = pytester.runpytest_subprocess()

    result.assert_outcomes(failed=4)
    text = result.stdout.str()
    for message in (
        "`nowhere` is not a revision",
        "does not exist at that revision",
        "has no module that a revision could have too",
        "is not in a git repository",
    ):
        assert message in text
