"""What measures a benchmark of pyperf again, as far as its file tells."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.exchange import pyperf
from corebound.exchange.pyperf import command_of
from corebound.exchange.run_export import cells_of
from corebound.scenario.matrix import expand
from support.build import a_launch, a_run, a_scenario


# The metadata are those that pyperf 2.10 wrote of the command beside them.
@pytest.mark.parametrize(
    ("about", "command"),
    [
        (
            {"name": "timeit", "timeit_stmt": "'sum(range(100))'", "timeit_setup": "'x=1'"},
            "python -m pyperf timeit --setup x=1 -- 'sum(range(100))'",
        ),
        (
            {
                "name": "timeit",
                "timeit_stmt": "'x = 1' 'y = 2'",
                "timeit_teardown": "'0'",
                "timeit_duplicate": 4,
                "inner_loops": 12,
            },
            "python -m pyperf timeit --teardown 0 --inner-loops 3 --duplicate 4 -- 'x = 1' 'y = 2'",
        ),
        (
            {"name": "command", "command": "/bin/sh -c 'sleep 1'"},
            "python -m pyperf command -- /bin/sh -c 'sleep 1'",
        ),
        (
            {"name": "nbody", "performance_version": "1.11.0"},
            "pyperformance run --benchmarks nbody",
        ),
        # A function that a script handed over: which script is not told.
        ({"name": "bench_func", "loops": 8}, ""),
        # What cannot be understood is no command.
        ({"timeit_stmt": "'open"}, ""),
        ({"timeit_stmt": "import os"}, ""),
        ({"timeit_stmt": 7}, ""),
        ({"command": "sh -c 'open"}, ""),
        ({"command": ""}, ""),
        ({"corebound_command": "rm -rf /"}, ""),
        ({"corebound_command": "corebound run a.yaml --only 'x=a b'"},
         "corebound run a.yaml --only 'x=a b'"),
    ],
)  # fmt: skip
def test_the_command_is_that_which_pyperf_noted(about: dict[str, Any], command: str) -> None:
    assert shlex.join(command_of(about)) == command


@given(
    statements=st.lists(st.text(st.characters(codec="ascii"), min_size=1), min_size=1, max_size=3)
)
def test_whatever_statements_were_timed_it_is_they_or_nothing(statements: list[str]) -> None:
    told = " ".join(map(repr, statements))

    words = command_of({"timeit_stmt": told})

    assert words in {(), ("python", "-m", "pyperf", "timeit", "--", *statements)}
    assert words or not all(one.isprintable() for one in statements)


@given(told=st.one_of(st.text(), st.integers(), st.none(), st.lists(st.text())))
def test_whatever_stands_there_is_no_traceback(told: object) -> None:
    for name in ("timeit_stmt", "timeit_setup", "command", "corebound_command", "inner_loops"):
        command_of({"timeit_stmt": "'a'"} | {name: told})


def test_an_imported_benchmark_has_it() -> None:
    about = {"name": "timeit", "date": "2026-01-02 03:04:05", "timeit_stmt": "'a'"}
    told = {"version": "1.0", "benchmarks": [{"metadata": about, "runs": [{"values": [1.0]}]}]}

    (series,) = pyperf.read(json.dumps(told).encode(), "p")

    assert series.reproduce == ("python", "-m", "pyperf", "timeit", "--", "a")


def test_what_corebound_exported_is_measured_again_by_corebound() -> None:
    scenario = a_scenario()
    run = a_run(scenarios=(scenario,))
    launches = tuple(a_launch(cell=cell) for cell in expand(scenario, "a.yaml"))

    cells, _ = cells_of(run, launches, "here")
    text = pyperf.suite(cells)
    one, _ = pyperf.read(text.encode(), "p")

    assert shlex.join(one.reproduce) == (
        f"corebound run {run.scenarios[0].path} --only binding=none"
    )
