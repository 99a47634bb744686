"""Every cell of every scenario as an asv benchmark.

`corebound plan` lists the cells and `corebound run` measures one; this module only passes the
values on to asv. It needs only the standard library and what asv provides, because asv imports it
with the Python of the project under test. If corebound is not installed there, the program on
PATH is used.

Environment variables:
    COREBOUND_SCENARIOS: Scenario files or folders, separated by colons; default: scenarios/.
    COREBOUND_PROFILE: quick or nightly.
    COREBOUND_UNLOCKED: 1 to run even if another run is active.

asv receives the median of each launch, so its intervals describe variation between launches. All
iterations are in corebound's records.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asv_runner.benchmarks.mark import SkipNotImplemented

SUITE = Path(__file__).resolve().parents[1]
# asv ends a benchmark at its timeout. corebound has a deadline for every launch; this is the time
# beyond the sum of these deadlines.
SPARE_S = 120.0


def command(*words: str) -> list[str]:
    """The command line of corebound: the one of this Python, else the one on PATH."""
    if importlib.util.find_spec("corebound") is not None:
        return [sys.executable, "-m", "corebound", *words]
    found = shutil.which("corebound")
    if found is None:
        raise FileNotFoundError(
            "corebound is neither in this environment nor on PATH: install it in one of them"
        )
    return [found, *words]


def run_corebound(*words: str) -> Any:
    """Run corebound and return its JSON; show its messages only if it fails.

    Exit code 4 means that launches failed; the JSON lists them.

    Raises:
        RuntimeError: It printed no JSON.
    """
    with tempfile.TemporaryFile("w+") as messages:
        completed = subprocess.run(
            command(*words),
            cwd=SUITE,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=messages,
            text=True,
            check=False,
        )
        messages.seek(0)
        log = messages.read()
    if not completed.stdout.strip():
        raise RuntimeError(f"corebound {words[0]} exited with {completed.returncode}:\n{log}")
    if completed.returncode:
        sys.stderr.write(log)
    return json.loads(completed.stdout)


def profile_options() -> list[str]:
    """The options for the requested profile."""
    name = os.environ.get("COREBOUND_PROFILE")
    return ["--profile", name] if name else []


def project_options() -> list[str]:
    """The options that make the environment of asv that of the project under test."""
    return ["--project-python", sys.executable]


def make_track(planned: dict[str, dict[str, Any]]) -> Callable[[Any, str], Any]:
    """Make the benchmark method of one scenario, whose cells are given by key."""

    def track_time(_self: Any, cell: str) -> dict[str, Any]:
        words = ["run", planned[cell]["file"], "--only", planned[cell]["id"], "--json"]
        words += ["--no-operators", *profile_options(), *project_options()]
        if os.environ.get("COREBOUND_UNLOCKED"):
            words.append("--unlocked")
        (measured,) = run_corebound(*words)["cells"]
        samples = [median_ns / 1e9 for median_ns in measured["launch_medians_ns"]]
        if not samples:
            raise RuntimeError(f"no launch was ok: {measured['statuses']}")
        return {"samples": samples, "number": 1}

    return track_time


def make_setup(planned: dict[str, dict[str, Any]]) -> Callable[[Any, str], None]:
    """Make the setup method, which skips cells that this host cannot run, with the reason."""

    def setup(_self: Any, cell: str) -> None:
        reason = planned[cell]["skipped"]
        if reason is not None:
            sys.stderr.write(f"skipped: {reason['what']}\n{reason['fix']}\n")
            raise SkipNotImplemented(reason["what"])

    return setup


def make_benchmark(scenario: str, planned: dict[str, dict[str, Any]]) -> type:
    """Make asv's benchmark class of one scenario, whose cells are given by key."""
    first = next(iter(planned.values()))
    measure = first["measure"]
    track = make_track(planned)
    attributes: dict[str, Any] = {
        # The default type of a `track_` benchmark is `track`.
        "type": "time",
        "unit": "seconds",
        "version": first["sha256"],
        "timeout": measure["timeout_s"] * measure["launches"]["max"] + SPARE_S,
        "pretty_name": f"{scenario}: time of an iteration",
    }
    for name, value in attributes.items():
        setattr(track, name, value)
    members = {
        "params": [list(planned)],
        "param_names": ["cell"],
        "setup": make_setup(planned),
        "track_time": track,
        "__doc__": f"The scenario {scenario}.",
        "__module__": __name__,
    }
    return type(class_name(scenario), (), members)


def class_name(scenario: str) -> str:
    """The class name for a scenario: `resnet50-inference` becomes `Resnet50Inference`."""
    words = re.split(r"[^a-z0-9]+", scenario)
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if name[:1].isalpha() else f"Scenario{name}"


def find_benchmarks() -> dict[str, type]:
    """The benchmark class of every scenario, by class name."""
    paths = os.environ.get("COREBOUND_SCENARIOS")
    files = paths.split(os.pathsep) if paths else ["scenarios"]
    by_scenario: dict[str, dict[str, dict[str, Any]]] = {}
    plan = run_corebound("plan", *files, "--json", *profile_options(), *project_options())
    for planned in plan["results"]:
        by_scenario.setdefault(planned["scenario"], {})[planned["cell"]] = planned
    return {class_name(name): make_benchmark(name, cells) for name, cells in by_scenario.items()}


globals().update(find_benchmarks())
