"""Startup of the command line: each command loads only the modules it needs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.quick

SCRIPT = """
import json, sys
from corebound.cli.app import main
sys.argv = ["corebound", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)))
"""


def loaded(*arguments: str) -> set[str]:
    completed = subprocess.run(
        (sys.executable, "-c", SCRIPT, *arguments), capture_output=True, text=True, check=True
    )
    return set(json.loads(completed.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("arguments", "needless"),
    [
        (("report", "--help"), {"asv", "pandas", "scipy.stats", "corebound.runner.scheduler"}),
        (("import", "asv", "--help"), {"asv", "pandas", "scipy", "jinja2"}),
        (("run", "--help"), {"asv", "pandas", "jinja2", "corebound.report"}),
        (("compare-commits", "--help"), {"asv"}),
        (("--version",), {"numpy", "scipy", "pydantic", "jinja2", "msgspec"}),
    ],
)
def test_a_command_loads_only_the_modules_it_needs(
    arguments: tuple[str, ...], needless: set[str]
) -> None:
    assert not loaded(*arguments) & needless


@pytest.mark.parametrize("arguments", [(), ("import",), ("environment",)])
def test_help_lists_every_command(arguments: tuple[str, ...]) -> None:
    command = (sys.executable, "-m", "corebound", *arguments, "--help")

    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "Commands:" in output
    assert "completion" not in output


def test_a_misspelt_command_gets_a_suggestion() -> None:
    command = (sys.executable, "-m", "corebound", "reprot")

    completed = subprocess.run(command, capture_output=True, text=True, check=False)

    assert completed.returncode == 2
    assert "'report'" in completed.stderr
