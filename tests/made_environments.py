"""Real environments for integration tests: code run in one, and scenarios run through the CLI."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from corebound.launch import environment
from corebound.model.record import Launch
from corebound.store import jsonl

ROOT = Path(__file__).parents[1]


def python_of(name: str) -> Path:
    """The environment's Python; where it has not been made, the test is skipped."""
    found = environment.find(name, ROOT)
    if found is None:
        pytest.skip(f"environment {name} has not been made: corebound environment make {name}")
    return found.python


def in_environment(name: str, code: str, *, cwd: Path, **variables: str) -> str:
    """Run code under an environment's Python that sees the package and nothing else of ours.

    Args:
        name: The environment's.
        code: What is run.
        cwd: Where the code, the package and temporary files may lie.
        variables: More environment variables for it.

    Returns:
        What it printed.
    """
    python = python_of(name)
    library, work = cwd / "library", cwd / "work"
    for folder in (library, work):
        folder.mkdir(exist_ok=True)
    if not (library / "corebound").exists():
        (library / "corebound").symlink_to(ROOT / "src" / "corebound")
    # In a file, for MindSpore compiles the source of functions.
    script = cwd / "script.py"
    script.write_text(code)
    done = subprocess.run(
        (str(python), str(script)),
        cwd=work,
        env={"PYTHONPATH": str(library), "HOME": str(work), "TMPDIR": str(cwd), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def told_by(framework: str, code: str, cwd: Path, **variables: str) -> Any:
    """Run code after the adapter was prepared as a worker does it; what it prints last is JSON.

    It is to leave nothing in the folder it is started in, which is its home too.
    """
    prepared = (
        "import json\n"
        f"from corebound.frameworks import {framework}_adapter as adapter\n"
        "adapter.prepare(seed=1, intra_op=None, inter_op=None)\n"
    )
    printed = in_environment(framework, prepared + code, cwd=cwd, **variables)
    assert list((cwd / "work").iterdir()) == []
    return json.loads(printed.splitlines()[-1])


def measure(suite: Path, name: str, **scenario: Any) -> tuple[Launch, ...]:
    """Run one scenario through the command line; see that it leaves only its records."""
    python_of(name)
    document = {
        "schema": 1,
        "name": "one",
        "title": "One",
        "question": "Does it run?",
        "environment": name,
        **scenario,
        # Whatever else uses this host is not what is asked.
        "measure": {
            "iterations": 3,
            "launches": {"min": 2, "max": 2},
            **scenario.get("measure", {}),
            "relaunch_disturbed": 0,
        },
    }
    (suite / "one.yaml").write_text(json.dumps(document))  # JSON is YAML too
    done = subprocess.run(
        (sys.executable, "-m", "corebound", "run", "one.yaml", "--json", "--unlocked"),
        cwd=suite,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {file.name for file in suite.iterdir()} == {"one.yaml", "reports"}
    (file,) = jsonl.files(suite / "reports" / "records")
    return jsonl.read(file).launches
