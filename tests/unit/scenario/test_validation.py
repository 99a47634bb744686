"""What is wrong with a scenario is said once each, in words, with its line."""

from __future__ import annotations

import pytest

from corebound.errors import ScenarioFaults
from corebound.scenario.json_schema import schema
from corebound.scenario.loader import load, load_document
from corebound.scenario.validation import EXPECTED

HEAD = "schema: 1\nname: a\ntitle: T\nquestion: Q?\n"
FUNCTION = HEAD + "workload: my_module:setup\n"
GEMM = HEAD + "workload: gemm\nenvironment: numpy\n"


def faults(text: str) -> str:
    with pytest.raises(ScenarioFaults) as caught:
        load(text.encode(), "f.yaml")
    return str(caught.value)


# Each: the file from line 5 or 6 on, then what is said of it, in full.
SHAPES: dict[str, tuple[str, str]] = {
    "a misspelt key": (
        FUNCTION + "bindng: none\n",
        "f.yaml:6: `bindng` is not a known key. Did you mean `binding`?",
    ),
    "a misspelt required key is one fault, not two": (
        FUNCTION.replace("title", "titel"),
        "f.yaml:3: `titel` is not a known key. Did you mean `title`?",
    ),
    "a key of another section": (
        FUNCTION + "iterations: 3\nmeasure: {binding: none}\n",
        """\
f.yaml:6: `iterations` is not a known key. Write it under `measure`.
f.yaml:7: `binding` is not a known key of `measure`. Write it at the top level.""",
    ),
    "a parameter outside `parameters`": (
        GEMM + "size: 512\nmatrix: {size: [512]}\n",
        """\
f.yaml:7: `size` is not a known key. Write it under `parameters`.
f.yaml:8: `size` is not a known key of `matrix`. Write it under `matrix.parameters`.""",
    ),
    "a key that means nothing": (
        FUNCTION + "needs_root: true\nmeasure: {zeal: 3}\n",
        """\
f.yaml:6: `needs_root` is not a known key. Remove it.
f.yaml:7: `zeal` is not a known key of `measure`. Remove it; known here: `warmup`, `iterations`, \
`launches`, `timeout_s`, `margin`, `operators`, `relaunch_disturbed`, \
`alternate` and `duplicates`.""",
    ),
    "missing keys": (
        "schema: 1\nname: a\nclaims:\n- says: x\n  faster: {binding: none}\n",
        """\
f.yaml:1: `title` is missing. Write the heading of its page.
f.yaml:1: `question` is missing. Write the question that the scenario answers.
f.yaml:1: `workload` is missing. Write a built-in's name, module:function, \
{command: [program, word, …]}, or {server: …, requests: …}.
f.yaml:4: `than` is missing in `claims`. Write it as in `{binding: none, threads: 2}`.""",
    ),
    "wrong values": (
        FUNCTION
        + "threads: many\nomp: 0\nsmt: yes\nbinding: physical-core\nmemory: []\nworkers:\n"
        + "mkl: '2'\nbackend: cgroup\n",
        """\
f.yaml:6: `threads: many` is not a thread count. \
Write default, per-core, per-cpu, host-cores, cores-per-worker, quota or a whole number from 1.
f.yaml:7: `omp: 0` is not a thread count. Write host-cores or a whole number from 1 to 65,536.
f.yaml:8: `smt: yes` is not true or false. Write true or false.
f.yaml:9: `binding: physical-core` is not a binding. Did you mean `physical-cores`?
f.yaml:10: `memory: []` is not a memory policy. \
Write default, local, bind, preferred, interleave or remote.
f.yaml:11: `workers` has no value. Write one, or remove the key.
f.yaml:12: `mkl: "2"` is not a count. Write a whole number from 1 to 65,536.
f.yaml:13: `backend: cgroup` is not a backend. Write auto, taskset, numactl or openmp.""",
    ),
    "axes of environment variables": (
        FUNCTION + "matrix:\n  env:\n    A: '1'\n    B: [2]\n    OMP_NUM_THREADS: ['1']\n",
        """\
f.yaml:8: `A: "1"` is not a list of values. Write `A: ["1"]`.
f.yaml:9: `B: 2` is not text. Put it in quotes: "2".
f.yaml:10: `OMP_NUM_THREADS` is set by corebound itself. Write `omp:` instead.""",
    ),
    "a list where one value belongs": (
        FUNCTION + "binding: [none, node]\n",
        (
            "f.yaml:6: `binding: [none, node]` is not a binding. "
            "Write one value here, or list several under `matrix`: `binding: [none, node]`."
        ),
    ),
    "axes that are none": (
        FUNCTION + "matrix:\n  binding: none\n  smt:\n  omp: []\n  threads: [2, many]\n",
        """\
f.yaml:7: `binding: none` is not a list of values. Write `binding: [none]`.
f.yaml:8: `smt` has no value. Write one, or remove the key.
f.yaml:9: `omp: []` is not an axis. Write at least one value, or remove the axis.
f.yaml:10: `threads: many` is not a thread count. \
Write default, per-core, per-cpu, host-cores, cores-per-worker, quota or a whole number from 1.""",
    ),
    "quotas that are none": (
        FUNCTION + "cpu_quota: 0\nmatrix:\n  cpu_quota: [1.5, all, 150%]\n",
        """\
f.yaml:6: `cpu_quota: 0` is not a CPU quota. Write the number of CPUs, 0.01 to 65,536, such as 1.5.
f.yaml:8: `cpu_quota: all` is not a CPU quota. \
Write the number of CPUs, 0.01 to 65,536, such as 1.5.
f.yaml:8: `cpu_quota: 150%` is not a CPU quota. \
Write the number of CPUs, 0.01 to 65,536, such as 1.5.""",
    ),
    "CPU lists that are none": (
        FUNCTION + "matrix:\n  binding:\n  - {cpus: 3-1}\n  - {cpus: [1]}\n  - {cpu: 1}\n  - {}\n",
        """\
f.yaml:8: `cpus: 3-1` is not a CPU list. Write numbers and ranges in one text: 0-3,8.
f.yaml:9: `cpus: [1]` is not a CPU list. Write numbers and ranges in one text: 0-3,8.
f.yaml:10: `cpu` is not a known key of `binding`. Did you mean `cpus`?
f.yaml:11: `binding: {}` is not a binding. Write none, one-cpu, physical-cores, logical-cpus, \
smt-siblings, cache, node, socket, per-worker, compact, scatter, launcher or {cpus: 0-3}.""",
    ),
    "warm-ups that are none": (
        FUNCTION + "measure:\n  warmup: {iterations: 3, seconds: 3}\nprofiles:\n"
        "  quick: {warmup: {iteration: 3}}\n  nightly: {warmup: some}\n",
        """\
f.yaml:7: `iterations` and `seconds` exclude each other. Keep one of them.
f.yaml:9: `iteration` is not a known key of `warmup`. Did you mean `iterations`?
f.yaml:10: `warmup: some` is not a warm-up. Write auto, {iterations: 10} or {seconds: 5}.""",
    ),
    "sections of the wrong kind": (
        FUNCTION + "matrix: []\nclaims: {}\nprofiles: {quick: 3, slow: {}}\nparameters: 3\n"
        "env: [a]\nbaseline:\n",
        """\
f.yaml:6: `matrix: []` is not a mapping of axes. \
Write axes as `threads: [1, 2]`, one on each line.
f.yaml:7: `claims: {}` is not a list of at most 64 claims. \
Write each with `says`, `faster` and `than`, after a `-`.
f.yaml:8: `quick: 3` is not a profile. Write keys of `measure`, `parameters` or `only` under it.
f.yaml:8: `slow` is not a known key of `profiles`. Remove it; known here: `quick` and `nightly`.
f.yaml:9: `parameters: 3` is not a mapping of parameters. \
Write them as `name: value`, one on each line.
f.yaml:10: `env: [a]` is not a mapping of environment variables. \
Write them as `NAME: "value"`; in a matrix, as `NAME: ["1", "2"]`.
f.yaml:11: `baseline` has no value. Write one, or remove the key.""",
    ),
    "numbers where text belongs": (
        HEAD + "workload: {command: [sleep, 1]}\nenv: {KMP_BLOCKTIME: 1}\n",
        """\
f.yaml:5: `command: 1` is not text. Put it in quotes: "1".
f.yaml:6: `KMP_BLOCKTIME: 1` is not text. Put it in quotes: KMP_BLOCKTIME: "1".""",
    ),
    "heads": (
        "schema: true\nname: My study\ntitle: ''\nquestion: 3\nworkload: [gemm]\n",
        """\
f.yaml:1: `schema: true` is not a version of this format. Write `schema: 1`.
f.yaml:2: `name: My study` is not a name. \
Write up to 80 lower-case letters, digits, `.`, `_` or `-`, a letter or digit first.
f.yaml:3: `title: ""` is not a title. Write the heading of its page.
f.yaml:4: `question: 3` is not a question. Write the question that the scenario answers.
f.yaml:5: `workload: [gemm]` is not a workload. \
Write a built-in's name, module:function, {command: [program, word, …]}, \
or {server: …, requests: …}.""",
    ),
}

MEANINGS: dict[str, tuple[str, str]] = {
    "an asynchronous built-in": (
        GEMM + "async: true\n",
        """\
f.yaml:7: `async: true` is for a function of your own. Remove it, or write `workload: \
module:function`.""",
    ),
    "a misspelt built-in": (
        HEAD + "workload: gem\n",
        "f.yaml:5: `gem` is not a workload. Did you mean `gemm`?",
    ),
    "a path for a module": (
        HEAD + "workload: ./mine.py:setup\n",
        (
            "f.yaml:5: `./mine.py:setup` is not a workload. "
            "Name a module beside this file without path or .py: module:function."
        ),
    ),
    "a built-in without an environment": (
        HEAD + "workload: gemm\n",
        "f.yaml:5: `gemm` needs an environment. Write `environment:` with numpy or pytorch.",
    ),
    "environments that do not do": (
        HEAD + "workload: gemm\nmatrix:\n"
        "  environment: [numpy, tensorflow, host, mine, numpy.txt, pytroch]\n",
        """\
f.yaml:7: `gemm` does not run in tensorflow. It runs in numpy or pytorch.
f.yaml:7: `gemm` does not run in plain Python. It runs in numpy or pytorch.
f.yaml:7: `environment: mine` does not name its framework. \
Write `framework:` too (`none` without one), or a name that starts with it, such as pytorch-mine.
f.yaml:7: `environment: numpy.txt` is a file name. Write `numpy`.
f.yaml:7: `environment: pytroch` does not name its framework. Did you mean `pytorch`? \
Write `framework:` too (`none` without one).""",
    ),
    "parameters of a built-in": (
        GEMM + "parameters: {sise: 1, dtype: float16}\nmatrix:\n  parameters:\n"
        "    size: [0, big, 1.5, true]\n",
        """\
f.yaml:7: `gemm` has no parameter `sise`. Did you mean `size`?
f.yaml:7: `dtype: float16` is not what `gemm` takes. Write float32 or float64.
f.yaml:10: `size: 0` is not what `gemm` takes. Write 1 or more.
f.yaml:10: `size: big` is not what `gemm` takes. Write a whole number.
f.yaml:10: `size: 1.5` is not what `gemm` takes. Write a whole number.
f.yaml:10: `size: true` is not what `gemm` takes. Write a whole number.""",
    ),
    "names of parameters": (
        FUNCTION + "parameters: {class: 1}\nmatrix:\n  parameters: {threads: [1, 2], a-b: [1]}\n",
        """\
f.yaml:6: `class` cannot be the name of a function's parameter. Use letters, digits and `_`.
f.yaml:8: the parameter `threads` has the name of a setting. Vary it under another name.
f.yaml:8: `a-b` cannot be the name of a function's parameter. Use letters, digits and `_`.""",
    ),
    "commands": (
        HEAD + "workload: {command: [sort x, '|', wc]}\nparameters: {rows: 3}\n",
        """\
f.yaml:5: `sort x` is not the name of a program. Write each argument as an item: [sort, x].
f.yaml:5: `|` would be passed to the program unchanged, not to a shell. \
Write one text and `shell: true` if you want a shell.
f.yaml:6: no command has `{rows}`, so the parameter does nothing. \
Write `{rows}` where its value belongs, or remove the parameter.""",
    ),
    "one key on an axis and off it": (
        FUNCTION + "threads: 2\nparameters: {rows: 3}\nmatrix:\n  threads: [1, 2]\n"
        "  parameters: {rows: [3]}\n",
        """\
f.yaml:9: `threads` is set in the matrix and outside it. Keep one of them.
f.yaml:10: `rows` is set in the matrix and outside it. Keep one of them.""",
    ),
    "values twice on an axis": (
        FUNCTION + "matrix:\n  threads: [1, 2, 1]\n  binding:\n  - {cpus: 0-1}\n"
        '  - {cpus: "1,0"}\n  parameters: {a: [1, "1", 1.0]}\n',
        """\
f.yaml:7: `threads: 1` appears twice on its axis. Keep one of them.
f.yaml:10: `binding: {cpus: 1,0}` appears twice on its axis. Keep one of them.
f.yaml:11: `a: 1` appears twice on its axis. Keep one of them.""",
    ),
    "excludes": (
        FUNCTION + "matrix:\n  threads: [1, 2]\n  binding: [none, node]\n  exclude:\n"
        "  - {threads: 3}\n  - {smt: true}\n  - {}\n",
        """\
f.yaml:10: `threads: 3` is not a value of its axis. There, it is 1 or 2.
f.yaml:11: `smt` is not an axis of the matrix. The axes are threads and binding.
f.yaml:12: this entry is empty. Name values of the cells to exclude, or remove it.""",
    ),
    "every cell excluded": (
        FUNCTION + "matrix:\n  threads: [1, 2]\n  exclude:\n  - {threads: 1}\n  - {threads: 2}\n",
        "f.yaml:8: no cell is left. Exclude fewer cells.",
    ),
    "includes": (
        FUNCTION + "matrix:\n  threads: [1, 2]\n  include:\n  - {threads: 1}\n"
        "  - {threads: 3}\n  - {threads: 3}\n  - {}\n",
        """\
f.yaml:9: the matrix already contains this. Remove it, or name a new value.
f.yaml:11: this adds a cell that another entry adds too. Remove one of them.
f.yaml:12: this entry is empty. Name the settings of a cell, or remove it.""",
    ),
    "a matrix too large": (
        FUNCTION
        + "matrix:\n  parameters:\n"
        + "".join(f"    p{i}: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n" for i in range(4))
        + "  smt: [true, false]\n",
        (
            "f.yaml:6: the matrix has 20,000 cells, more than 10,000. "
            "Shorten axes, or make several scenarios."
        ),
    ),
    "a baseline that is no cell": (
        FUNCTION + "matrix: {binding: [none, node], threads: [1, 2]}\n"
        "baseline: {binding: socket, threads: 1}\n",
        "f.yaml:7: no cell has `binding: socket`. There, it is none or node.",
    ),
    "a baseline whose values never meet": (
        FUNCTION + "matrix:\n  binding: [none, node]\n  threads: [1, 2]\n"
        "  exclude: [{binding: none, threads: 2}]\nbaseline: {binding: none, threads: 2}\n",
        "f.yaml:10: no cell has all of this. Name values that meet in one cell.",
    ),
    "claims": (
        FUNCTION + "matrix: {binding: [none, node], threads: [1, 2]}\nclaims:\n"
        "- {says: x, faster: {threads: 3}, than: {threads: 1}}\n"
        "- {says: x, faster: {threads: 1}, than: {threads: 1}}\n"
        "- {says: x, faster: {threads: 2}, than: {threads: 1}, published_ratio: 0.72}\n",
        """\
f.yaml:8: no cell has `threads: 3`. There, it is 1 or 2.
f.yaml:9: no pair of cells matches `faster` and `than`. \
Name different values; the cells must agree on every other axis.
f.yaml:10: `published_ratio: 0.72` means that `faster` was slower. \
Write how many times as fast it was, or swap the sides.""",
    ),
    "settings that exclude each other": (
        FUNCTION + "bind: after-start\nsmt: false\nbackend: taskset\nmemory: bind\n"
        "matrix:\n  binding: [none, smt-siblings]\n",
        """\
f.yaml:6: `bind: after-start` has nothing to bind with `binding: none`. \
Choose another binding, or remove that cell with `exclude`.
f.yaml:7: `smt: false` leaves no siblings for `binding: smt-siblings`. \
Remove one, or exclude that cell.
f.yaml:9: `backend: taskset` cannot do `memory: bind`. \
Write `backend: auto` or `backend: numactl`.""",
    ),
    "memory nodes without a policy, and a list that is none": (
        FUNCTION + "matrix:\n  memory: [default, bind]\n  memory_nodes: ['0,8', 'zero']\n",
        """\
f.yaml:8: `memory_nodes: "zero"` is not memory nodes. \
Write numbers and ranges, such as 0,2-3.""",
    ),
    "memory nodes that nothing uses": (
        FUNCTION + "memory_nodes: 0,8\n",
        """\
f.yaml:6: `memory_nodes: 0,8` does nothing with `memory: default`. \
Write `memory: bind`, `interleave`, `preferred` or `remote`.""",
    ),
    "openmp after the start": (
        FUNCTION + "binding: node\nbackend: openmp\nbind: after-start\n",
        (
            "f.yaml:8: `backend: openmp` binds threads as they start, never after. "
            "Write `backend: taskset`, or `bind: before-start`."
        ),
    ),
    "what a framework cannot be told": (
        GEMM + "inter_op: 2\nbinding: launcher\n",
        """\
f.yaml:7: `inter_op: 2` does not apply to numpy. \
Remove it, or remove that cell with `exclude`.
f.yaml:8: `binding: launcher` needs a launcher, and numpy has none. \
Use it with pytorch or torchserve.""",
    ),
    "variables": (
        FUNCTION + 'env:\n  OMP_NUM_THREADS: "2"\n  a=b: x\n',
        """\
f.yaml:7: `OMP_NUM_THREADS` is set by corebound itself. Write `omp:` instead.
f.yaml:8: `a=b` cannot be the name of an environment variable. \
Write a name without `=` or blanks around it.""",
    ),
    "measuring that contradicts itself": (
        FUNCTION + "measure:\n  iterations: 100\n  warmup: {iterations: 100}\n"
        "  launches: {min: 31}\nprofiles:\n"
        "  quick: {warmup: {iterations: 10}, iterations: 10}\n"
        "  nightly: {warmup: {seconds: 900}}\n",
        """\
f.yaml:8: a warm-up of 100 leaves none of the 100 iterations. \
Lower the warm-up, or raise `iterations`.
f.yaml:9: `min: 31` is more than `max: 30`. Write both, `max` not below `min`.
f.yaml:11: a warm-up of 10 leaves none of the 10 iterations. \
Lower the warm-up, or raise `iterations`.
f.yaml:12: a warm-up of 900 s does not end before the deadline of 600 s. \
Lower the warm-up, or raise `timeout_s`.""",
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_invalid_keys_and_values_are_reported(name: str) -> None:
    text, expected = SHAPES[name]

    assert faults(text) == expected


@pytest.mark.parametrize("name", MEANINGS)
def test_contradictory_settings_are_reported(name: str) -> None:
    text, expected = MEANINGS[name]

    assert faults(text) == expected


def test_faults_of_both_kinds_are_reported_together() -> None:
    text = GEMM + (
        "bindng: none\nparameters: {size: 0}\nmatrix:\n  threads: [1, many]\n"
        "measure: {warmup: {iterations: 500}, iterations: 100}\n"
    )

    assert [line.partition(". ")[0] for line in faults(text).splitlines()] == [
        "f.yaml:7: `bindng` is not a known key",
        "f.yaml:8: `size: 0` is not what `gemm` takes",
        "f.yaml:10: `threads: many` is not a thread count",
        "f.yaml:11: a warm-up of 500 leaves none of the 100 iterations",
    ]


@pytest.mark.parametrize(
    "text",
    [
        # In each, what is wrong would, left out, make something else look wrong.
        FUNCTION + "binding: nodes\nbind: after-start\n",
        HEAD + "workload: gemm\nenvironment: [numpy]\n",
        FUNCTION + "matrix: {binding: [none, nodes]}\nbaseline: {binding: node}\n",
        FUNCTION + "matrix: {threads: [1], include: [{threads: 0}]}\nbaseline: {threads: 2}\n",
        FUNCTION + "measure: {warmup: {iterations: 500}, iterations: 1e3}\n",
        FUNCTION + "matrix: {bindng: [none, node]}\nbaseline: {binding: node}\n",
        FUNCTION + "matrix: {threads: [0]}\n",
    ],
)
def test_one_mistake_is_reported_once(text: str) -> None:
    assert len(faults(text).splitlines()) == 1


def test_every_key_of_the_model_has_an_error_message() -> None:
    parts = schema()["$defs"].values()
    keys = {key for part in (schema(), *parts) for key in part["properties"]}

    assert keys | {"quick", "nightly"} == set(EXPECTED)


def test_a_recorded_scenario_of_a_newer_version_is_rejected() -> None:
    document = load((FUNCTION + "threads: 2\n").encode(), "f.yaml").document()

    with pytest.raises(ScenarioFaults) as caught:
        load_document({**document, "quantum": True}, "r.jsonl")

    assert str(caught.value) == "r.jsonl: `quantum` is not a known key. Remove it."


def test_a_recorded_scenario_may_name_a_workload_that_no_longer_exists() -> None:
    document = load(GEMM.encode(), "f.yaml").document()

    assert load_document({**document, "workload": "gone-since"}, "r.jsonl").workload == "gone-since"
