"""A function of the user's own is judged by its module's source, and only where that tells."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.errors import ScenarioFaults
from corebound.launch import find_module
from corebound.scenario.function_checks import Module, ModuleFinder, find_function, guess_framework
from corebound.scenario.loader import load
from corebound.scenario.matrix import expand
from support.faults import fault_cases, unlike

HEAD = "schema: 1\nname: a\ntitle: T\nquestion: Q?\n"
SOURCE = b"""
import functools
from other import exported

def setup(*, rows, columns=3):
    return lambda: None

def anything(**given):
    return lambda: None

def by_position(rows, /, columns=3):
    return lambda: None

def on_gpus(*, gpus):
    return lambda: None

@functools.cache
def decorated(rows):
    return lambda: None

async def asynchronous():
    return lambda: None

def generator():
    yield lambda: None

class Made:
    def __init__(self, rows):
        self.rows = rows

class Plain:
    def step(self):
        pass

class Inherits(Made):
    pass

if functools:
    def conditional(rows):
        return lambda: None

def twice(rows):
    return lambda: None

twice = functools.partial(twice, rows=1)

def changed(rows):
    return lambda: None

changed.__kwdefaults__ = {"rows": 1}
assigned = lambda rows: None
"""


def of_a_source(source: bytes = SOURCE) -> ModuleFinder:
    return lambda _module, _environment: Module(source=source)


def faults(text: str, find: ModuleFinder) -> str:
    """What is said of a scenario; nothing where it is sound."""
    try:
        load((HEAD + text).encode(), "f.yaml", find)
    except ScenarioFaults as error:
        return str(error)
    return ""


@fault_cases("functions")
def test_each_fault_is_reported_once_with_its_line(text: str, expected: list[str]) -> None:
    assert not unlike(faults(text, of_a_source()), expected)


@pytest.mark.parametrize(
    "text",
    [
        "workload: mine:setup\nparameters: {rows: 1, columns: 2}\n",
        "workload: mine:setup\nmatrix: {parameters: {rows: [1, 2]}}\n",
        "workload: mine:on_gpus\ngpus: 1\n",
        "workload: mine:asynchronous\nasync: true\n",
        "workload: mine:Made\nparameters: {rows: 1}\n",
        # Scenarios whose modules are found elsewhere, or whose workload has no function.
        "workload: mine:setpu\nenv: {PYTHONPATH: /elsewhere}\n",
        "workload: {command: ['true']}\n",
        "workload: gemm\nenvironment: numpy\n",
    ],
)
def test_a_correct_function_is_accepted(text: str) -> None:
    assert faults(text, of_a_source()) == ""


UNTELLABLE = (
    "anything", "decorated", "Inherits", "conditional", "twice", "changed", "assigned", "exported",
)  # fmt: skip


@pytest.mark.parametrize("name", UNTELLABLE)
def test_an_inconclusive_source_is_accepted(name: str) -> None:
    assert faults(f"workload: mine:{name}\nparameters: {{odd: 1}}\n", of_a_source()) == ""


@pytest.mark.parametrize(
    "line",
    [
        "globals()['made'] = print",
        "from other import *",
        "def __getattr__(name): return print",
        "import sys; sys.modules[__name__] = print",
        "exec('made = print')",
        "def f():\n    global made\n    made = print",
        "[made := print for _ in range(1)]",
        "for made in (print,): pass",
        "try:\n    pass\nexcept ValueError as made:\n    pass",
        "match [print]:\n    case [made]: pass",
        "import made.inner",
        "import inner as made",
        "with open('x') as (_, made): pass",
        "made: object",
        "class made(Base): pass",
    ],
)
def test_a_name_that_may_be_created_at_run_time_is_accepted(line: str) -> None:
    assert faults("workload: mine:made\nparameters: {a: 1}\n", of_a_source(line.encode())) == ""


def test_a_method_named_modules_does_not_make_a_source_dynamic() -> None:
    source = b"def setup(): return [one for one in network.modules()]"

    assert "Did you mean `setup`?" in faults("workload: mine:setpu\n", of_a_source(source))


def test_invalid_python_is_a_fault_except_in_the_project_under_test() -> None:
    broken = of_a_source(b"\ndef setup(:\n")

    assert "f.yaml:5: `mine` has a syntax error in line 2:" in faults("workload: mine:f\n", broken)
    assert faults("workload: mine:f\nenvironment: project\n", broken) == ""


def test_an_unknown_environment_does_not_hide_faults_in_another() -> None:
    def find(_module: str, environment: str) -> Module | None:
        return None if environment == "numpy" else Module(source=SOURCE)

    text = "workload: mine:setpu\nmatrix: {environment: [numpy, host]}\n"

    assert "`mine` has no function `setpu`" in faults(text, find)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode), st.text(max_size=5))
def test_no_source_makes_reading_fail(source: bytes, name: str) -> None:
    find_function(source, name)


@pytest.mark.parametrize(
    ("name", "environment_is_made", "message"),
    [
        ("miner", True, "no module `miner` is beside this file or in environment `host`. Did you"),
        ("miner", False, "no module `miner` is beside this file. Did you mean `mine`?"),
        ("other", True, "no module `other` is beside this file or in environment `host`. Put it"),
        ("other", False, ""),
        ("package.part", True, ""),
        ("package.prat", True, "`package` has no module `prat`."),
        ("package.prat", False, "`package` has no module `prat`."),
        ("mine.part", True, "`mine` has no module `part`."),
        ("folder.prat", True, "`folder` has no module `prat`."),
        ("dynamic.part", True, ""),
        ("os.path", True, ""),
        ("xml.prat", True, "`xml` has no module `prat`."),
        ("math", True, ""),
        ("random", True, ""),
        ("corebound.worker.workloads.gemm_numpy", False, ""),
    ],
)
def test_a_module_is_searched_where_a_worker_imports_it(
    name: str, environment_is_made: bool, message: str, tmp_path: Path
) -> None:
    for folder in ("package", "folder", "dynamic"):
        (tmp_path / folder).mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "part.py").write_text("def f(): ...\n")
    (tmp_path / "dynamic" / "__init__.py").write_text("__path__.append('/elsewhere')\n")
    (tmp_path / "mine.py").write_text("def f(): ...\n")
    # The worker may have imported the standard library's by the time that it looks for this one.
    (tmp_path / "random.py").write_text("")
    python = Path(sys.executable) if environment_is_made else None

    result = faults(
        f"workload: {name}:product\n",
        lambda module, _environment: find_module.find(module, folder=tmp_path, python=python),
    )

    if message:
        assert message in result
    else:
        assert "no module" not in result


@pytest.mark.parametrize(
    ("modules", "framework"),
    [
        ({"mine": b"import torch"}, "pytorch"),
        ({"mine": b"def setup():\n    from sklearn import svm\n"}, "scikit-learn"),
        ({"mine": b"import numpy, torch.nn as nn"}, "pytorch"),
        ({"mine": b"import numpy"}, "numpy"),
        ({"mine": b"import os, model", "model": b"import jax"}, "jax"),
        ({"mine": b"import torch, sklearn"}, None),
        ({"mine": b"import os"}, None),
        ({"mine": b"def broken(:"}, None),
    ],
)
def test_the_framework_is_the_one_that_the_module_imports(
    modules: dict[str, bytes], framework: str | None
) -> None:
    def find(name: str, _environment: str) -> Module | None:
        return Module(source=modules[name]) if name in modules else None

    assert guess_framework("mine:setup", "python:.venv", find) == framework


def test_a_guessed_framework_is_recorded_and_a_written_one_kept() -> None:
    text = HEAD + "workload: mine:setup\nenvironment: {python: .venv}\n"
    find = of_a_source(b"import torch\ndef setup(): ...\n")

    guessed = load(text.encode(), "f.yaml", find)
    written = load((text + "framework: none\n").encode(), "f.yaml", find)

    assert guessed.document()["framework"] == "pytorch"
    assert written.document()["framework"] == "none"
    assert expand(guessed, "f.yaml")[0].environment == "python:.venv"
