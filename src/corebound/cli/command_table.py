"""All commands by name: where each is, and how groups nest. It imports none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from corebound.exchange.importers import IMPORTERS, Tool


class CommandGroup(NamedTuple):
    """A group of commands: its help, and the location of each command, or a group in it."""

    help: str
    locations: Mapping[str, str | CommandGroup]


# The tools whose commands `import_results` makes, by location.
IMPORTS: Mapping[str, Tool] = {f"import_results:{tool}": tool for tool in IMPORTERS}
# The location of each command, by its name, in the order of the help.
COMMANDS: Mapping[str, str | CommandGroup] = {
    "init": "init:init",
    "example": "example:example",
    "doctor": "doctor:doctor",
    "inspect": "inspect:inspect",
    "topology": "plan:topology",
    "check": "plan:check",
    "plan": "plan:plan",
    "run": "run:run",
    "list": "records:list_",
    "show": "records:show",
    "log": "records:log",
    "compare": "compare:compare",
    "compare-commits": "compare_commits:compare_commits",
    "bisect": "bisect:bisect",
    "tune": "tune:tune",
    "calibrate": "calibrate:calibrate",
    "regressions": "regressions:regressions",
    "report": "report:report",
    "publish": "publish:publish",
    "nightly": "nightly:nightly",
    "reproduce": "reproduce:reproduce",
    "update": "update:update",
    "schema": "plan:schema",
    "environment": CommandGroup(
        help="""Create, list and delete environments.

        Examples:
            corebound environment make pytorch
            corebound environment make --for scenarios/
            corebound environment list
        """,
        locations={
            "make": "environment:make",
            "list": "environment:list_",
            "remove": "environment:remove",
        },
    ),
    "import": CommandGroup(
        help="""Import results of other tools.

        Examples:
            corebound import asv ~/src/numpy/benchmarks
            corebound import pytest-benchmark .benchmarks --project parser
            corebound import profile trace.json --name resnet50
        """,
        locations={
            "asv": "import_history:asv",
            **{tool: location for location, tool in IMPORTS.items()},
            "profile": "import_profile:profile",
        },
    ),
    "export": "export:export",
    "fleet": CommandGroup(
        help="""Measure on many hosts, through Dask, Slurm or Kubernetes.

        Examples:
            corebound fleet plan fleet.yaml
            corebound fleet run fleet.yaml
            corebound fleet status fleet.yaml
            corebound fleet collect fleet.yaml
        """,
        locations={
            "plan": "fleet:plan",
            "run": "fleet:run",
            "status": "fleet:status",
            "collect": "fleet:collect",
            "resume": "fleet:resume",
            "cancel": "fleet:cancel",
            "hosts": CommandGroup(
                help="""Change which machines the fleet knows.

                Examples:
                    corebound fleet hosts forget fleet.yaml n1
                """,
                locations={"forget": "fleet:forget"},
            ),
            "agent": "fleet:agent",
        },
    ),
    "completion": "completion:completion",
}


def command_words(arguments: Sequence[str]) -> tuple[str, ...]:
    """The command that was typed, such as `import asv`; empty if there is none."""
    for number, word in enumerate(arguments):
        if word in COMMANDS:
            location, end = COMMANDS[word], number + 1
            while isinstance(location, CommandGroup) and end < len(arguments):
                location, end = location.locations.get(arguments[end], ""), end + 1
            return tuple(arguments[number:end])
    return ()
