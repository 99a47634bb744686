"""compare-commits of what is no commit: settings, requirements files, versions of a package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from corebound.store import jsonl

SCENARIO = """\
schema: 1
name: counting
title: Counting
question: How long does it take to count?
workload: steps:setup
environment: {environment}
parameters: {{size: 1}}
matrix: {{binding: [none, one-cpu]}}
measure:
  iterations: 12
  warmup: {{iterations: 2}}
  relaunch_disturbed: 0
  launches: {{min: 4, max: 4}}
"""
STEPS = """\
def setup(*, size):
    return lambda: sum(range(10_000 * size))
"""
# What a package's version costs.
OF_VERSION = """\
from iniconfig._version import version

def setup(*, size):
    size = 20 if version == "2.1.0" else 1
    return lambda: sum(range(10_000 * size))
"""


def corebound(suite: Path, *words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        (sys.executable, "-m", "corebound", *words),
        cwd=suite,
        env={
            **os.environ,
            "TMPDIR": str(suite / "tmp"),
            "COREBOUND_CACHE": str(suite / "cache"),
        },
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def compared(suite: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    code, out, err = corebound(suite, "compare-commits", *words, "--json")
    assert out, err
    told: dict[str, Any] = json.loads(out)
    return code, told, err


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    made = tmp_path / "suite"
    for name in ("scenarios", "tmp", "environments"):
        (made / name).mkdir(parents=True)
    (made / "scenarios" / "counting.yaml").write_text(SCENARIO.format(environment="host"))
    (made / "scenarios" / "steps.py").write_text(STEPS)
    return made


def test_a_slower_setting_is_a_regression_and_the_launches_took_turns(suite: Path) -> None:
    code, told, _ = compared(suite, "parameters.size=1", "parameters.size=20")

    assert code == 1
    assert [cell["cell"] for cell in told["cells"]] == ["binding=none", "binding=one-cpu"]
    assert {cell["scenario"] for cell in told["cells"]} == {"counting"}
    assert all(cell["is_regression"] for cell in told["cells"])
    assert (told["base"]["name"], told["head"]["name"]) == ("1", "20")
    stored = jsonl.read(suite / told["records"])
    by_block: dict[int, set[str]] = {}
    for launch in stored.launches:
        by_block.setdefault(launch.block, set()).add(dict(launch.cell.axes)["size"])
    assert list(by_block.values()) == [{"1", "20"}] * 4


def test_an_axis_of_the_scenario_gives_way_to_the_two_that_are_compared(suite: Path) -> None:
    code, out, err = corebound(
        suite, "compare-commits", "binding=one-cpu", "binding=logical-cpus", "--margin", "0.9"
    )

    assert code == 0, err
    assert "None of 1 cells slower" in out
    assert "binding: one-cpu" in out


def test_two_versions_of_a_package_are_built_and_the_slower_one_told(suite: Path) -> None:
    (suite / "scenarios" / "counting.yaml").write_text(
        SCENARIO.format(environment="mine\nframework: none")
    )
    (suite / "scenarios" / "steps.py").write_text(OF_VERSION)
    (suite / "environments" / "mine.txt").write_text("iniconfig==2.0.0\n")

    code, told, err = compared(suite, "iniconfig==2.0.0", "iniconfig==2.1.0", "--only",
                               "binding=none")  # fmt: skip

    assert code == 1, err
    (cell,) = told["cells"]
    assert (cell["cell"], cell["verdict"]) == ("binding=none", "slower")
    written = suite / "environments" / "mine-iniconfig-2.1.0.txt"
    assert written.read_text().splitlines()[1:] == ["iniconfig==2.1.0"]
    # Its files stay, and may be compared as such; one that cannot be made is that side's.
    (suite / "environments" / "none.txt").write_text("iniconfig==99.0\n")
    code, told, _ = compared(
        suite, "environments/mine-iniconfig-2.0.0.txt", "environments/none.txt",
        "--only", "binding=none",
    )  # fmt: skip
    assert code == 4
    (cell,) = told["cells"]
    assert cell["verdict"] is None
    assert "none" in cell["missing"][0]
    assert "could not be installed" in cell["missing"][0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("threads=1", "HEAD"), "is a setting, and `HEAD` a commit"),
        (("threads=1", "omp=2"), "set different things"),
        (("threads=1", "threads=1"), "both sides"),
        (("colour=1", "colour=2"), "no setting"),
        (("a.txt", "b.txt"), "no environment `a`"),
        (("numpy==1.0", "numpy==2.0"), "another version of a package"),
    ],
)
def test_bad_input_is_an_error_for_people(suite: Path, words: tuple[str, ...], told: str) -> None:
    code, _, err = corebound(suite, "compare-commits", *words)

    assert code == 2
    assert told in " ".join(err.split())
