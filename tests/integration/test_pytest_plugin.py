"""The fixture `corebound` in a real test session of a small git repository."""

import os
import subprocess
from pathlib import Path

import pytest

from support.commands import isolation

# Naps, which other programs on the host hardly disturb, but many tests do.
pytestmark = [pytest.mark.quick, pytest.mark.measures]

MODULE = """\
import time

def work():
    time.sleep(0.004 * {times})

def same():
    time.sleep(0.01)

def less():
    time.sleep(0.002)
"""
TESTS = """\
import json

from parsing import naps

def test_slow_down(corebound):
    corebound.check(naps.work, baseline="main", margin=0.03, launches=(3, 6), budget_s=40)

def test_no_change(corebound):
    corebound.check(naps.same, baseline="main", margin=0.3, launches=(3, 4))

def test_faster_than_another(corebound):
    result = corebound.check(naps.less, baseline=naps.same, launches=(3, 4))
    assert result.verdict == "faster"

def test_slower_than_another(corebound):
    corebound.check(naps.same, baseline=lambda: naps.less(), launches=(3, 4))

def test_revision(corebound):
    corebound.check(naps.work, baseline="nowhere")

def test_new_function(corebound):
    corebound.check(naps.added, baseline="main")

def test_lambda(corebound):
    corebound.check(lambda: 1, baseline="main")

def test_installed(corebound):
    corebound.check(json.dumps, baseline="main")
"""
# Why a test fails.
FAILURES = {
    "test_slow_down": r"work@main → work: 1\.\d+× slower \(95 % CI 1\.\d+–\d\.\d+\).*; "
    r"the margin is 3.0%",
    "test_slower_than_another": "slower",
    "test_revision": "`nowhere` is not a revision",
    "test_new_function": "does not exist at that revision",
    "test_lambda": "has no module that a revision could have too",
    "test_installed": "is not in a git repository",
}


@pytest.fixture
def changed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in `src`, committed on `main`, with changes that are not committed."""
    variables = isolation(pytester.path) | {"GIT_CONFIG_GLOBAL": os.devnull}
    for role in ("AUTHOR", "COMMITTER"):
        variables |= {f"GIT_{role}_NAME": "A", f"GIT_{role}_EMAIL": "a@example.org"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    package = pytester.path / "src" / "parsing"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "naps.py").write_text(MODULE.format(times=4))
    pytester.makepyfile(test_speed=TESTS)
    pytester.makeini("[pytest]\npythonpath = src\naddopts = -p no:cacheprovider")
    for command in ("init --quiet --initial-branch=main", "add .", "commit --quiet --message=a"):
        subprocess.run(("git", *command.split()), cwd=pytester.path, check=True)
    (package / "naps.py").write_text(MODULE.format(times=6) + "\ndef added(): pass\n")
    return package


def test_a_slow_down_fails_with_its_interval_and_what_cannot_be_checked_says_why(
    pytester: pytest.Pytester, changed: Path
) -> None:
    result = pytester.runpytest_subprocess()

    result.assert_outcomes(passed=2, failed=len(FAILURES))
    text = result.stdout.str()
    for test, reason in FAILURES.items():
        result.stdout.re_match_lines([f".*{test}.*", f".*{reason}"])
    # Checks that passed are in the summary, too.
    result.stdout.re_match_lines(
        [r"=+ corebound =+", r"test_speed.py::test_no_change: same@main → "]
    )
    assert "Traceback" not in text
