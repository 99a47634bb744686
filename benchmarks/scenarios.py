"""asv's door: every cell of every scenario as an asv benchmark, with no logic of its own.

`corebound plan` says which cells there are and `corebound run` measures one; this only
hands on. It needs nothing but the standard library and what asv brings, for asv imports it under
the Python of the project under test. Where corebound is not installed there, the program on
PATH is used.

Set in the environment:
    COREBOUND_SCENARIOS: scenario files or folders, parted by colons, instead of scenarios/.
    COREBOUND_PROFILE: quick or nightly.
    COREBOUND_UNLOCKED: 1 to measure although another run does.

What asv is given is the median of each launch, so that its intervals are of what can be
replicated. Every iteration stands in corebound's own records.
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
# asv ends a benchmark that is silent for so long. We are silent, and have a deadline for
# every launch and so for all of them: this is for the day that fails.
SPARE_S = 120.0


def command(*words: str) -> list[str]:
    """What runs corebound: this Python's own, else the one on PATH."""
    if importlib.util.find_spec("corebound") is not None:
        return [sys.executable, "-m", "corebound", *words]
    found = shutil.which("corebound")
    if found is None:
        raise FileNotFoundError(
            "corebound is neither in this environment nor on PATH: install it in one of them"
        )
    return [found, *words]


def answer(*words: str) -> Any:
    """Run a command of corebound's; its words go to no pipe of asv's unless it fails.

    The exit code 4 says that launches failed, and the answer says which.
    """
    with tempfile.TemporaryFile("w+") as said:
        done = subprocess.run(
            command(*words),
            cwd=SUITE,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            check=False,
        )
        said.seek(0)
        log = said.read()
    if not done.stdout.strip():
        raise RuntimeError(f"corebound {words[0]} exited with {done.returncode}:\n{log}")
    if done.returncode:
        sys.stderr.write(log)
    return json.loads(done.stdout)


def profile() -> list[str]:
    """The profile that is asked for, as options."""
    chosen = os.environ.get("COREBOUND_PROFILE")
    return ["--profile", chosen] if chosen else []


def project() -> list[str]:
    """The project under test is the one that asv has installed here, as options."""
    return ["--project-python", sys.executable]


def timing(planned: dict[str, dict[str, Any]]) -> Callable[[Any, str], Any]:
    """The benchmark of one scenario's cells, by key."""

    def track_time(_self: Any, cell: str) -> dict[str, Any]:
        words = ["run", planned[cell]["file"], "--only", planned[cell]["id"], "--json"]
        words += ["--no-operators", *profile(), *project()]
        if os.environ.get("COREBOUND_UNLOCKED"):
            words.append("--unlocked")
        (measured,) = answer(*words)["cells"]
        samples = [median_ns / 1e9 for median_ns in measured["launch_medians_ns"]]
        if not samples:
            raise RuntimeError(f"no launch was ok: {measured['statuses']}")
        return {"samples": samples, "number": 1}

    return track_time


def fitting(planned: dict[str, dict[str, Any]]) -> Callable[[Any, str], None]:
    """What leaves a cell out that this host cannot hold, with its reason."""

    def setup(_self: Any, cell: str) -> None:
        unfit = planned[cell]["skipped"]
        if unfit is not None:
            sys.stderr.write(f"skipped: {unfit['what']}\n{unfit['mend']}\n")
            raise SkipNotImplemented(unfit["what"])

    return setup


def benchmark(scenario: str, planned: dict[str, dict[str, Any]]) -> type:
    """A class of benchmarks, as asv knows them, of one scenario."""
    first = next(iter(planned.values()))
    measure = first["measure"]
    track = timing(planned)
    told: dict[str, Any] = {
        # asv files what a `track_` benchmark returns under its own type unless told otherwise.
        "type": "time",
        "unit": "seconds",
        "version": first["sha256"],
        "timeout": measure["timeout_s"] * measure["launches"]["max"] + SPARE_S,
        "pretty_name": f"{scenario}: time of an iteration",
    }
    for name, value in told.items():
        setattr(track, name, value)
    members = {
        "params": [list(planned)],
        "param_names": ["cell"],
        "setup": fitting(planned),
        "track_time": track,
        "__doc__": f"The scenario {scenario}.",
        "__module__": __name__,
    }
    return type(class_name(scenario), (), members)


def class_name(scenario: str) -> str:
    """A scenario's name as a class's: `resnet50-inference` is `Resnet50Inference`."""
    words = re.split(r"[^a-z0-9]+", scenario)
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if name[:1].isalpha() else f"Scenario{name}"


def discovered() -> dict[str, type]:
    """A class for every scenario there is."""
    chosen = os.environ.get("COREBOUND_SCENARIOS")
    files = chosen.split(os.pathsep) if chosen else ["scenarios"]
    by_scenario: dict[str, dict[str, dict[str, Any]]] = {}
    for planned in answer("plan", *files, "--json", *profile(), *project()):
        by_scenario.setdefault(planned["cell"]["scenario"], {})[planned["key"]] = planned
    return {class_name(name): benchmark(name, cells) for name, cells in by_scenario.items()}


globals().update(discovered())
