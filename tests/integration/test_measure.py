"""`corebound.measure` with real processes, from a script as a user writes it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.commands import isolation

# Naps, so that other programs on the host disturb no launch.
MODULE = """\
import time

def once(): time.sleep(0.003)

def three_times(): time.sleep(0.009)

def prepare(): return lambda: time.sleep(0.006)

def broken(): raise ValueError("no data")
"""
REPORT = """
import json
print(json.dumps({
    "verdicts": [row.verdict for row in result],
    "ratios": [row.slowdown_ratio for row in result],
    "cells": [row.cell for row in result],
    "launches": result.results.launches()["status"].value_counts().to_dict(),
    "iterations": len(result.results.iterations()),
}))
"""


def measured(folder: Path, script: str) -> dict[str, Any]:
    """What a script prints that leaves its measurement in `result`."""
    return reported(executed(folder, script + REPORT))


def reported(completed: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert completed.returncode == 0, completed.stderr
    report: dict[str, Any] = json.loads(completed.stdout.splitlines()[-1])
    return report


def executed(
    folder: Path, script: str, *, has_file: bool = True
) -> subprocess.CompletedProcess[str]:
    (folder / "naps.py").write_text(MODULE)
    (folder / "script.py").write_text(script)
    return subprocess.run(
        (sys.executable, *(("script.py",) if has_file else ("-c", script))),
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **isolation(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.quick
def test_functions_of_a_module_are_measured_in_fresh_processes(tmp_path: Path) -> None:
    report = measured(
        tmp_path,
        "import corebound, naps\n"
        "result = corebound.measure(naps.once, naps.three_times, launches=(3, 6))\n",
    )

    assert report["verdicts"] == ["slower"]
    assert report["ratios"][0] == pytest.approx(3, rel=0.2)
    assert report["cells"] == ["function=three_times"]
    assert report["launches"]["ok"] >= 4
    assert report["iterations"] > 50


def test_functions_of_a_script_and_lambdas_are_sent_by_value(tmp_path: Path) -> None:
    report = measured(
        tmp_path,
        "import corebound, functools, naps\n"
        "N = 3\n"
        "def own(): [naps.once() for _ in range(N)]\n"
        "result = corebound.measure(\n"
        "    own, lambda: naps.once(), functools.partial(sum, range(60_000)),\n"
        "    names=['own', 'less', 'sum'], launches=(3, 4))\n",
    )

    assert report["cells"] == ["function=less", "function=sum"]
    assert report["ratios"][0] == pytest.approx(1 / 3, rel=0.3)


def test_functions_and_objects_of_a_notebook_are_measured_as_they_were_defined_last(
    tmp_path: Path,
) -> None:
    # What a kernel does: cells run in `__main__`, which has no file, below a running event loop.
    cells = (
        "import corebound",
        "LIMIT = 10_000",
        "def short(): sum(range(1_000 * LIMIT))",
        "def short(): sum(range(LIMIT))",
        (
            "class Counter:\n"
            "    def __init__(self, times): self.times = times\n"
            "    def __call__(self): [short() for _ in range(self.times)]"
        ),
        "result = corebound.measure(short, Counter(10), names=['short', 'ten'], launches=(3, 4))",
        REPORT.replace("import json", "import json; assert '<table' in result._repr_html_()"),
    )
    kernel = (
        "import asyncio, sys\n"
        "async def kernel():\n"
        f"    for cell in {cells!r}:\n"
        "        exec(compile(cell, '<cell>', 'exec'), vars(sys.modules['__main__']))\n"
        "asyncio.run(kernel())\n"
    )

    report = reported(executed(tmp_path, kernel, has_file=False))

    assert report["cells"] == ["function=ten"]
    # Ten times as long; the first definition would take a hundred times as long as the object.
    assert report["ratios"][0] > 3


def test_a_setup_is_not_part_of_the_step(tmp_path: Path) -> None:
    report = measured(
        tmp_path,
        "import corebound, naps\n"
        "def prepare(): return naps.once\n"
        "result = corebound.measure(\n"
        "    prepare, naps.prepare, setup=True, names=['one', 'two'], launches=(3, 4))\n",
    )

    assert report["ratios"][0] == pytest.approx(2, rel=0.3)


def test_a_function_that_fails_is_one_error_with_its_traceback(tmp_path: Path) -> None:
    completed = executed(
        tmp_path,
        "import corebound, naps\n"
        "try:\n"
        "    corebound.measure(naps.once, naps.broken)\n"
        "except corebound.CoreboundError as error:\n"
        "    print(error)\n",
    )

    assert "function broken" in completed.stdout
    assert "ValueError: no data" in completed.stdout
    assert "naps.py" in completed.stdout


def test_a_module_that_measures_when_it_is_imported_says_so(tmp_path: Path) -> None:
    (tmp_path / "unguarded.py").write_text(
        "import corebound, naps\n"
        "def own(): naps.once()\n"
        "corebound.measure(own, naps.once, launches=(2, 2))\n"
    )

    completed = executed(tmp_path, "import unguarded\n")

    assert "below `if __name__" in completed.stderr


def test_scenarios_are_measured_and_kept_as_the_command_does(tmp_path: Path) -> None:
    (tmp_path / "hashes.yaml").write_text(
        "schema: 1\nname: hashes\ntitle: Hashes\nquestion: How long?\nworkload: naps:prepare\n"
        "matrix: {binding: [none, one-cpu]}\nmeasure: {duplicates: each}\n"
    )

    completed = executed(
        tmp_path,
        "import corebound\n"
        "results = corebound.run('hashes.yaml', profile='quick', only=['binding=none'])\n"
        "frame = corebound.load('reports/records').launches()\n"
        "assert len(results.launches()) == len(frame) > 0\n"
        "print(sorted(set(frame['axis_binding'])))\n"
        "try:\n"
        "    corebound.run('none.yaml')\n"
        "except corebound.CoreboundError as error:\n"
        "    print(error)\n",
    )

    assert completed.returncode == 0, completed.stderr
    first, *rest = completed.stdout.splitlines()
    assert first == "['none']"
    assert "none.yaml" in rest[0]
