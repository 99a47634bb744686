"""A suite that a night is of: a clone of a repository elsewhere, with last night's site."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from corebound.workflow.publish import folder as folders
from support import commands
from support.suites import COUNT, committed, counting
from support.toy_repository import built_by_asv, git

LAST_NIGHT = "last night"


def a_suite(folder: Path) -> Path:
    """Make `suite`, a clone of `origin.git`, to which somebody pushes from `elsewhere`."""
    elsewhere = counting(
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
    built_by_asv(elsewhere, "counting")
    committed(elsewhere, ignored=("/public", "/.asv/"))
    git(folder, "clone", "--quiet", "--bare", "elsewhere", "origin.git")
    git(elsewhere, "remote", "add", "origin", f"file://{folder}/origin.git")
    git(folder, "clone", "--quiet", f"file://{folder}/origin.git", "suite")
    good = folder / "good"
    good.mkdir()
    (good / "index.html").write_text(LAST_NIGHT)
    folders.publish(folders.opened(good, "yesterday"), folder / "suite" / "public")
    return folder / "suite"


def pushed(suite: Path, *, amended: bool = False) -> str:
    """Somebody changes the steps and pushes, or writes the last commit anew; its hash."""
    elsewhere = suite.parent / "elsewhere"
    steps = elsewhere / "scenarios" / "steps.py"
    steps.write_text(f"# Another way.\n{COUNT}")
    changed = ("--amend", "--no-edit") if amended else ("--message", "count in another way")
    git(elsewhere, "commit", "--quiet", "--all", *changed)
    git(elsewhere, "push", "--quiet", "--force", "origin", "main")
    return git(elsewhere, "rev-parse", "HEAD").strip()


def nightly(suite: Path, *words: str) -> tuple[int, str, str]:
    """A night to its end."""
    return commands.corebound(suite, "nightly", "--to", "public", *words)


def shown(suite: Path) -> str:
    """What a reader of the published site finds."""
    return (suite / "public" / "index.html").read_text()


def journal(suite: Path) -> list[dict[str, Any]]:
    """The lines of the only night's journal."""
    found = list((suite / "reports" / "nights").glob("*/journal.jsonl"))
    assert len(found) <= 1, "another night was begun"
    return [json.loads(line) for file in found for line in file.read_text().splitlines()]
