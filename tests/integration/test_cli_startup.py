"""Startup of the command line: each command loads only the modules it needs."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from corebound.cli.app import app

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


def test_help_imports_no_command() -> None:
    modules = loaded("-h")

    assert not modules & {"rich", "numpy", "pydantic", "msgspec.json", "corebound.workflow"}
    assert not any(name.startswith("corebound.cli.commands.") for name in modules)


def test_every_command_has_its_own_help_and_examples() -> None:
    group = typer.main.get_group(app)
    context = typer.Context(group)

    def commands(parent: Any, prefix: str) -> Iterator[tuple[str, Any]]:
        for name in parent.list_commands(context):
            command = parent.get_command(context, name)
            if hasattr(command, "list_commands"):
                yield from commands(command, f"{prefix}{name} ")
            else:
                yield f"{prefix}{name}", command

    found = dict(commands(group, ""))

    assert {"run", "list", "import asv"} <= found.keys()
    assert [name for name, command in found.items() if "Examples:" not in command.help] == []
    assert "List runs, the newest first." in found["list"].help


@pytest.mark.parametrize(("shell", "request_"), [("bash", "complete_bash"), ("fish", "")])
def test_shells_get_completion(shell: str, request_: str) -> None:
    command = (sys.executable, "-m", "corebound")
    script = subprocess.run(
        (*command, "completion", shell), capture_output=True, text=True, check=True
    ).stdout

    assert "_COREBOUND_COMPLETE" in script
    if request_:
        asked = {"COMP_WORDS": "corebound ru", "COMP_CWORD": "1", "_COREBOUND_COMPLETE": request_}
        answer = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **asked}
        )
        assert answer.stdout.split() == ["run"]


def test_a_misspelt_command_gets_a_suggestion() -> None:
    command = (sys.executable, "-m", "corebound", "reprot")

    completed = subprocess.run(command, capture_output=True, text=True, check=False)

    assert completed.returncode == 2
    assert "'report'" in completed.stderr
