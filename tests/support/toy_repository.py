"""A small repository with a known past: what its commits cost is planted, step by step.

Used to judge `compare-commits` and `bisect`, by the tests and by `benchmarks.commits`.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

# Iterations of the inner loop for one step without any slow-down: a few milliseconds.
WORK = 40_000

SCENARIO = """\
schema: 1
name: toy
title: The toy's one function
question: What does a commit cost?
workload: toy_steps:setup
environment: project
binding: one-cpu
measure:
  iterations: {iterations}
  relaunch_disturbed: 0
  launches: {{min: {least}, max: {most}, until_relative_ci: {width}}}
"""
STEPS = """\
from toy import total


def setup():
    return total
"""
# What a refactoring changes: names and order, never the work.
_SHAPES = (
    """\
def total():
    value = 0
    for number in range({work}):
        value += number & 7
    return value
""",
    """\
def total():
    result = 0
    for step in range({work}):
        result += step & 7
    return result


def unused():
    return total()
""",
)
SETUP = "from setuptools import setup\n\nsetup()\n"
BROKEN = "raise SystemExit('this commit does not build')\n"


class Toy(Struct, frozen=True, kw_only=True):
    """A repository, and the hashes of its commits, oldest first."""

    folder: Path
    commits: tuple[str, ...]


def make(
    folder: Path,
    *,
    commits: int = 30,
    slower: Mapping[int, float],
    broken: Sequence[int] = (),
    least: int = 6,
    most: int = 30,
    width: float = 0.01,
    iterations: int = 60,
) -> Toy:
    """Make the repository, with a scenario and an asv.conf.json of its own.

    Args:
        folder: An empty one.
        commits: How many; those that `slower` does not name change nothing that counts.
        slower: For a commit's place from 0, by what share its work grows.
        broken: Places of commits that do not build.
        least: Launches of its scenario at the least.
        most: Launches at the most.
        width: The interval's, at which to stop between the two.
        iterations: Of each launch.
    """
    (folder / "toy").mkdir(parents=True)
    (folder / "scenarios").mkdir()
    installable(folder, "toy", packages=["toy"])
    built_by_asv(folder, "toy")
    (folder / ".gitignore").write_text(".asv/\nreports/\n")
    (folder / "scenarios" / "toy.yaml").write_text(
        SCENARIO.format(least=least, most=most, width=width, iterations=iterations)
    )
    (folder / "scenarios" / "toy_steps.py").write_text(STEPS)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    work, made = float(WORK), []
    for place in range(commits):
        work *= 1 + slower.get(place, 0.0)
        shape = _SHAPES[place % len(_SHAPES)].format(work=round(work))
        (folder / "toy" / "__init__.py").write_text(f'"""Revision {place}."""\n\n\n{shape}')
        (folder / "setup.py").write_text(BROKEN if place in broken else SETUP)
        git(folder, "add", "--all")
        subject = f"make it {slower[place]:.0%} slower" if place in slower else "refactor"
        git(folder, "commit", "--quiet", "--message", f"{place}: {subject}")
        made.append(git(folder, "rev-parse", "HEAD").strip())
    return Toy(folder=folder, commits=tuple(made))


def installable(folder: Path, name: str, **setuptools: Any) -> None:
    """Let pip install what is in a folder; `setuptools` is how its packages are found."""
    told = "".join(f"{key} = {_toml(value)}\n" for key, value in setuptools.items())
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n\n'
        f'[project]\nname = "{name}"\nversion = "1"\n\n[tool.setuptools]\n{told}'
    )


def _toml(value: Any) -> str:
    """A value as TOML writes it: of these JSON differs in tables alone."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


def built_by_asv(folder: Path, name: str, **changes: Any) -> None:
    """Write an asv.conf.json of the repository in a folder; changes replace or add keys."""
    document = {
        "version": 1,
        "project": name,
        "repo": ".",
        "branches": ["main"],
        "environment_type": "virtualenv",
        "build_command": [],
        # With the setuptools that asv puts there: an environment more, of the build alone, would
        # be made for each commit.
        "install_command": [
            "in-dir={env_dir} python -m pip install --no-build-isolation {build_dir}"
        ],
        "env_dir": ".asv/env",
        "results_dir": ".asv/results",
        "html_dir": ".asv/html",
        **changes,
    }
    (folder / "asv.conf.json").write_text(json.dumps(document, indent=1))


def git(folder: Path, *words: str) -> str:
    """What git says, as a person who is nobody's account."""
    person = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Toy"), ("EMAIL", "toy@example.org"))
    }
    done = subprocess.run(
        ("git", "-C", str(folder), *words),
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **person},
    )
    return done.stdout
