"""Suites on disk: a scenario's file and its steps; what a test is about replaces or adds keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from support.toy_repository import git

COUNT = "def setup():\n    return lambda: sum(range(20_000))\n"
NAP = """\
import time

def setup(*, seconds):
    return lambda: time.sleep(seconds)
"""


def counting(folder: Path, *, steps: str = COUNT, **document: Any) -> Path:
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
    put(folder / "scenarios" / "counting.yaml", written)
    (folder / "scenarios" / "steps.py").write_text(steps)
    return folder


def napping(folder: Path, *, steps: str = NAP, **document: Any) -> Path:
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
    put(folder / "nap.yaml", written)
    (folder / "nap.py").write_text(steps)
    return folder


def put(file: Path, document: dict[str, Any]) -> None:
    """Write a scenario's file."""
    file.write_text(yaml.safe_dump(document, sort_keys=False))


def committed(folder: Path, message: str = "begin", *, ignored: tuple[str, ...] = ()) -> Path:
    """The folder as a repository of git, with all that is in it in one commit."""
    (folder / ".gitignore").write_text("".join(f"{one}\n" for one in ("/reports/", *ignored)))
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return folder
