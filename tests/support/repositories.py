"""Suites on disk and git repositories of them: scenario files, workloads, commits, nightly runs."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from corebound.workflow.publish import open_site, publish_to_folder
from support import commands

COUNT = "def setup():\n    return lambda: sum(range(20_000))\n"
# Work that sleeps: others on the host take no CPU time from it, so no launch of it is discarded.
NAP_SIZE = "import time\n\ndef setup(*, size):\n    return lambda: time.sleep(0.003 * size)\n"
SLEEP = """\
import time

def setup(*, seconds):
    return lambda: time.sleep(seconds)
"""


def counting_suite(folder: Path, *, steps: str = COUNT, **document: Any) -> Path:
    """A suite of one scenario, scenarios/counting.yaml, which counts; its folder."""
    written = {
        "schema": 1,
        "name": "counting",
        "title": "Counting",
        "question": "How long does it take to count?",
        "workload": "steps:setup",
        "environment": "host",
        **document,
    }
    (folder / "scenarios").mkdir(parents=True, exist_ok=True)
    write_scenario(folder / "scenarios" / "counting.yaml", written)
    (folder / "scenarios" / "steps.py").write_text(steps)
    return folder


def two_sizes_suite(folder: Path) -> Path:
    """A suite in a repository that naps: cells of two sizes, each with three short launches."""
    suite = counting_suite(
        folder,
        steps=NAP_SIZE,
        matrix={"parameters": {"size": [1, 2]}},
        measure={
            "iterations": 12,
            "margin": 0.9,
            "warmup": {"iterations": 2},
            "relaunch_disturbed": 0,
            "launches": {"min": 3, "max": 3},
        },
    )
    return commit_all(suite, "count", ignored=("__pycache__/",))


def sleeping_suite(folder: Path, *, steps: str = SLEEP, **document: Any) -> Path:
    """A suite of one scenario, nap.yaml, that sleeps, so that a busy host changes little."""
    written = {
        "schema": 1,
        "name": "nap",
        "title": "A nap",
        "question": "Does binding disturb a nap?",
        "workload": "nap:setup",
        "environment": "host",
        "parameters": {"seconds": 0.002},
        "baseline": {"binding": "none"},
        **document,
    }
    write_scenario(folder / "nap.yaml", written)
    (folder / "nap.py").write_text(steps)
    return folder


def write_scenario(file: Path, document: dict[str, Any]) -> None:
    """Write a scenario's file."""
    file.write_text(yaml.safe_dump(document, sort_keys=False))


def commit_all(folder: Path, message: str = "begin", *, ignored: tuple[str, ...] = ()) -> Path:
    """The folder as a repository of git, with all that is in it in one commit."""
    (folder / ".gitignore").write_text("".join(f"{one}\n" for one in ("/reports/", *ignored)))
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return folder


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
# Sleeps for as long as the function would count, so that other programs cannot disturb it.
NAPPING_STEPS = """\
import time

from toy import total


def setup():
    return lambda: time.sleep(total() * 4e-6)
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


def make_toy(
    folder: Path,
    *,
    commits: int = 30,
    slower: Mapping[int, float],
    broken: Sequence[int] = (),
    least: int = 6,
    most: int = 30,
    width: float = 0.01,
    iterations: int = 60,
    naps: bool = False,
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
        naps: Sleep for some 6 ms in place of computing, for tests beside others.
    """
    (folder / "toy").mkdir(parents=True)
    (folder / "scenarios").mkdir()
    write_pyproject(folder, "toy", packages=["toy"])
    write_asv_conf(folder, "toy")
    (folder / ".gitignore").write_text(".asv/\nreports/\n")
    (folder / "scenarios" / "toy.yaml").write_text(
        SCENARIO.format(least=least, most=most, width=width, iterations=iterations)
    )
    (folder / "scenarios" / "toy_steps.py").write_text(NAPPING_STEPS if naps else STEPS)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    work, made = WORK / (100 if naps else 1), []
    for position in range(commits):
        work *= 1 + slower.get(position, 0.0)
        shape = _SHAPES[position % len(_SHAPES)].format(work=round(work))
        (folder / "toy" / "__init__.py").write_text(f'"""Revision {position}."""\n\n\n{shape}')
        (folder / "setup.py").write_text(BROKEN if position in broken else SETUP)
        git(folder, "add", "--all")
        subject = f"make it {slower[position]:.0%} slower" if position in slower else "refactor"
        git(folder, "commit", "--quiet", "--message", f"{position}: {subject}")
        made.append(git(folder, "rev-parse", "HEAD").strip())
    return Toy(folder=folder, commits=tuple(made))


def write_pyproject(folder: Path, name: str, **setuptools: Any) -> None:
    """Let pip install what is in a folder; `setuptools` is how its packages are found."""
    settings = "".join(f"{key} = {_toml(value)}\n" for key, value in setuptools.items())
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n\n'
        f'[project]\nname = "{name}"\nversion = "1"\n\n[tool.setuptools]\n{settings}'
    )


def _toml(value: Any) -> str:
    """A value as TOML writes it: of these JSON differs in tables alone."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


def quick_builds(folder: Path) -> dict[str, Any]:
    """Keys of an asv.conf.json in this folder with which builds repeat nothing of each other."""
    plugin = Path(__file__).with_name("copied_environments.py")
    shutil.copy(plugin, folder)
    return {
        "plugins": [f".{plugin.stem}"],
        "environment_type": "copied",
        # With the setuptools that asv puts there: an environment more, of the build alone, would
        # be made for each commit.
        "install_command": [
            "in-dir={env_dir} python -m pip install --no-build-isolation {build_dir}"
        ],
    }


def write_asv_conf(folder: Path, name: str, **changes: Any) -> None:
    """Write an asv.conf.json of the repository in a folder; changes replace or add keys."""
    document = {
        "version": 1,
        "project": name,
        "repo": ".",
        "branches": ["main"],
        **quick_builds(folder),
        "build_command": [],
        "env_dir": ".asv/env",
        "results_dir": ".asv/results",
        "html_dir": ".asv/html",
        **changes,
    }
    (folder / "asv.conf.json").write_text(json.dumps(document, indent=1))


def git(folder: Path, *arguments: str) -> str:
    """What git says, as a person who is nobody's account."""
    person = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Toy"), ("EMAIL", "toy@example.org"))
    }
    completed = subprocess.run(
        ("git", "-C", str(folder), *arguments),
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **person},
    )
    return completed.stdout


PREVIOUS_PAGE = "last night"


def nightly_suite(folder: Path) -> Path:
    """Make `suite`, a clone of `origin.git`, to which somebody pushes from `elsewhere`."""
    elsewhere = counting_suite(
        folder / "elsewhere",
        matrix={"binding": ["none", "one-cpu"]},
        measure={
            "iterations": 12,
            "warmup": {"iterations": 2},
            "relaunch_disturbed": 0,
            "launches": {"min": 3, "max": 3},
        },
        baseline={"binding": "none"},
    )
    write_asv_conf(elsewhere, "counting")
    commit_all(elsewhere, ignored=("/public", "/.asv/"))
    git(folder, "clone", "--quiet", "--bare", "elsewhere", "origin.git")
    git(elsewhere, "remote", "add", "origin", f"file://{folder}/origin.git")
    git(folder, "clone", "--quiet", f"file://{folder}/origin.git", "suite")
    good = folder / "good"
    good.mkdir()
    (good / "index.html").write_text(PREVIOUS_PAGE)
    publish_to_folder(open_site(good, "yesterday"), folder / "suite" / "public")
    return folder / "suite"


def push_change(suite: Path, *, amended: bool = False) -> str:
    """Somebody changes the steps and pushes, or writes the last commit anew; its hash."""
    elsewhere = suite.parent / "elsewhere"
    steps = elsewhere / "scenarios" / "steps.py"
    steps.write_text(f"# Another way.\n{COUNT}")
    changed = ("--amend", "--no-edit") if amended else ("--message", "count in another way")
    git(elsewhere, "commit", "--quiet", "--all", *changed)
    git(elsewhere, "push", "--quiet", "--force", "origin", "main")
    return git(elsewhere, "rev-parse", "HEAD").strip()


def run_nightly(suite: Path, *arguments: str) -> tuple[int, str, str]:
    """A night to its end."""
    return commands.corebound(suite, "nightly", "--to", "public", *arguments)


def published_page(suite: Path) -> str:
    """What a reader of the published site finds."""
    return (suite / "public" / "index.html").read_text()


def read_journal(suite: Path) -> list[dict[str, Any]]:
    """The lines of the only night's journal."""
    files = list((suite / "reports" / "nights").glob("*/journal.jsonl"))
    assert len(files) <= 1, "another night was begun"
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]
