"""Each command is a function of the Python API, and its result is the same object."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import pytest
from typer.main import get_command

import corebound
from corebound.cli.app import app
from support.paths import ROOT

# The functions whose names differ from those of their commands.
FUNCTIONS = {
    "example": "write_examples",
    "list": "Results.runs",
    "show": "Results.document",
    "log": "Results.log",
    "compare": "Results.compare",
    "regressions": "Results.regressions",
    # The package of the pages is `corebound.report`.
    "report": "write_site",
    "environment make": "make_environments",
    "environment list": "environments",
    "environment remove": "remove_environments",
    "import asv": "import_asv",
    "import profile": "import_profiles",
    "fleet hosts forget": "Fleet.forget_host",
}
# The commands without a function, and why.
WITHOUT = {
    "schema": "its output is a file: the JSON Schema",
    "completion": "its output is a script for a shell",
    "fleet agent": "an engine starts it on each host",
}
REFERENCE = (ROOT / "docs" / "reference" / "python-api.md").read_text("utf-8")


def commands(command: Any, *words: str) -> Iterator[tuple[str, Any]]:
    """Each command with its words, those of groups included."""
    if not hasattr(command, "list_commands"):
        yield " ".join(words), command
        return
    context = command.make_context("corebound", [], resilient_parsing=True)
    for name in command.list_commands(context):
        yield from commands(command.get_command(context, name), *words, name)


COMMANDS = dict(commands(get_command(app)))


def function_of(name: str) -> str:
    """The name of a command's function in the API."""
    group, _, verb = name.partition(" ")
    if group == "fleet":
        return FUNCTIONS.get(name, f"Fleet.{verb}")
    if group == "import":
        return FUNCTIONS.get(name, "import_results")
    return FUNCTIONS.get(name, name.replace("-", "_"))


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - WITHOUT.keys()))
def test_each_command_is_a_function_with_documentation(name: str) -> None:
    function = function_of(name)

    assert attrgetter(function)(corebound).__doc__
    owner = function.partition(".")[0]
    assert f":: corebound.{owner}\n" in REFERENCE


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"schema", "completion"}))
def test_each_command_prints_its_result_as_json(name: str) -> None:
    assert "--json" in {option for one in COMMANDS[name].params for option in one.opts}


def test_only_commands_that_exist_are_named_here() -> None:
    assert FUNCTIONS.keys() | WITHOUT.keys() <= COMMANDS.keys()
