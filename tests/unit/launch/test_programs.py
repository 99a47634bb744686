"""Which commands follow the variables that set a number of threads."""

from pathlib import Path

import pytest

from corebound.launch.programs import follows_threads
from corebound.scenario.loader import load
from corebound.scenario.matrix import expand

SERVED = 'requests: {url: "http://127.0.0.1:8000/"}'


@pytest.mark.parametrize(
    ("workload", "files", "follows"),
    [
        ("{command: [./work]}", {"work": b"\x7fELF\0libgomp.so.1\0"}, True),
        ("{command: [./work]}", {"work": b"\x7fELF\0libc.so.6\0"}, False),
        ("{command: [./work]}", {"work": b"#!/bin/sh\nexport OMP_NUM_THREADS\n"}, True),
        ("{command: [python, train.py]}", {"train.py": b"import os\nimport torch\n"}, True),
        ("{command: [python, train.py]}", {"train.py": b"import torches, os\n"}, False),
        ("{command: [python, -m, own.train]}", {"own/train.py": b"from numpy import dot\n"}, True),
        ("{command: [python, '{script}']}", {"b.py": b"  import sklearn\n"}, True),
        ("{shell: true, command: 'python \"b.py\" | cat'}", {"b.py": b"import jax, torch\n"}, True),
        ("{command: [no-such-program, '{script}']}", {"work": b"OMP_NUM_THREADS"}, False),
        (f"{{server: {{command: [run, app:app]}}, {SERVED}}}", {"app.py": b"import torch"}, True),
        (f"{{server: {{command: [run, app:app]}}, {SERVED}}}", {"app.py": b"import json"}, False),
        (f"{{{SERVED}}}", {}, False),
        ("own:setup", {}, False),
    ],
)
def test_a_program_that_follows_thread_variables_mentions_them_or_a_library_that_does(
    workload: str, files: dict[str, bytes], tmp_path: Path, *, follows: bool
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    text = f"schema: 1\nname: a\ntitle: T\nquestion: Q?\nworkload: {workload}\n"
    text += "parameters: {script: b.py}\n" if "{script}" in text else ""
    text += "parameters: {concurrency: 1}\n" if "requests" in text else ""
    scenario = load(text.encode(), "a.yaml")

    assert follows_threads(scenario, expand(scenario, "a.yaml")[0], tmp_path) == follows
