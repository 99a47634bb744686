"""Python takes what the commands take, with the same defaults and limits."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

import corebound
from corebound.errors import InputError
from corebound.workflow.bisect import BisectRequest
from corebound.workflow.calibrate import CalibrateRequest
from corebound.workflow.compare_commits import CompareCommitsRequest
from corebound.workflow.inspect import InspectRequest
from corebound.workflow.measure_functions import FunctionRequest
from corebound.workflow.nightly import NightlyRequest
from corebound.workflow.options import seconds
from corebound.workflow.plan import PlanRequest
from corebound.workflow.reproduce import ReproduceRequest
from corebound.workflow.run import SuiteRequest
from corebound.workflow.tune_request import TuneRequest

from .test_commands import COMMANDS, WITHOUT, function_of

# Only these differ. First the options that have another name in Python, of every command or of one;
# a function's own name if it does what the option asks for, and None if there is no counterpart.
NAMES: Mapping[str, str | None] = {
    # Numbers with a unit.
    "budget": "budget_s",
    "wait": "wait_s",
    "bound": "bound_ms",
    # About the terminal: every result has `document`, shows itself, and is complete; progress is
    # shown only if `notify` is passed.
    "json": None,
    "quiet": None,
    "format": None,
    "all": None,
    # Several functions instead of one command.
    "tune verify": "verify_tuning",
    "doctor tune": "tune_host",
    "doctor restore": "restore_host",
    "regressions accept": "Results.decide",
    "regressions fixed": "Results.decide",
    "regressions reopen": "Results.decide",
    "compare by": "Results.hosts",
    # Methods of the results of `load`.
    "list records": "load",
    "show records": "load",
    "log records": "load",
    "compare records": "load",
    "regressions records": "load",
    "show name": "Results.filter",
    "log name": "Results.filter",
    "compare names": "Results.filter",  # two positional arguments
    # Words that Python reserves, or that say more there.
    "bisect scenario": "file",
    "environment make for": "files",
    "export format_": "file_format",
    "fleet collect from": "copied",
    "import profile paths": "files",
    "publish repo": "repository",
    "round": "round_name",
    "init github": "integrations",
    "init gitlab": "integrations",
    "init makefile": "integrations",
    "init none": "integrations",
    # What judges all that the results say.
    "show metric": "Results.filter",
    "compare metric": "Results.filter",
    "regressions metric": "Results.filter",
    "run metric": "Results.filter",
    # What the columns of a table are.
    **{
        f"import {tool} {field}": f"Columns.{field}"
        for tool in ("csv", "json")
        for field in corebound.Columns.__struct_fields__
    },
    # A loop around the function.
    "inspect every": None,
    # The standard library does it: `webbrowser`, `http.server`.
    "report open": None,
    "report serve": None,
    "report port": None,
}
# The functions of a command besides that of its name.
MORE = {
    "tune": ("verify_tuning",),
    "doctor": ("tune_host", "restore_host"),
    "regressions": ("Results.decide",),
}
# What only Python has, and the commands do otherwise.
ONLY_PYTHON = {
    "notify": "the terminal shows progress by itself",
    "progress": "the same, as numbers",
    "ready": "the terminal prints each environment at once",
    "init choose": "a terminal asks",
    "tune file": "one race needs one file, and `files` of `--verify` has several",
    "compare before": "the two names",
    "compare after": "the two names",
    "regressions state": "three options",
    "regressions change": "the value of these options",
    "fleet hosts forget round_name": "of every method of a fleet, and not used by this one",
    "import tool": "each tool is a command",
    "import columns": "options of the two commands for tables",
}
# The options whose defaults differ, and why.
DEFAULTS = {
    "wait": "a script waits a minute; on a terminal, the user can wait or not",
    "tune objective": "without --verify, none is the latency",
    "nightly to": "the same: without a branch, both publish to reports/public",
    "init integrations": "flags of which none is chosen",
}


def options(command: str) -> dict[str, Any]:
    """The options and arguments of a command, by the name that the user types."""
    params = (one for one in COMMANDS[command].params if "--help" not in one.opts)
    return {max(one.opts, key=len).removeprefix("--").replace("-", "_"): one for one in params}


def name_of(command: str, option: str) -> str | None:
    """The name in Python of an option."""
    return NAMES.get(f"{command} {option}", NAMES.get(option, option))


def functions(command: str) -> Iterator[tuple[str, dict[str, inspect.Parameter]]]:
    """Each function of a command, and its parameters by name; those of its class, too."""
    for name in (function_of(command), *MORE.get(command, ())):
        function = attrgetter(name)(corebound)
        found = dict(inspect.signature(function).parameters) if callable(function) else {}
        if name.startswith("Fleet."):
            found = {**inspect.signature(corebound.Fleet).parameters, **found}
        yield name, {key: value for key, value in found.items() if key != "self"}


def plain(value: object) -> object:
    """A default in one form: none, the text of a path, a number of seconds."""
    if isinstance(value, Path):
        return str(value)
    return None if value in ((), [], "", inspect.Parameter.empty) else value


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - WITHOUT.keys()))
def test_python_has_each_option_with_its_default(command: str) -> None:
    differences = []
    for option, typed in options(command).items():
        name = name_of(command, option)
        if name is None:
            continue
        found = [(each, having[name]) for each, having in functions(command) if name in having]
        # A function of its own has a name that is listed here.
        if not found and (name == option or not has(name)):
            differences.append(f"no {name}")
        for function, parameter in found:
            default = plain(typed.default)
            if option == "budget" and default is not None:
                default = seconds(str(default))
            differs = plain(parameter.default) != default
            if differs and not {option, f"{command} {option}", f"{command} {name}"} & {*DEFAULTS}:
                differences.append(f"{function}({name}={parameter.default}), not {default}")

    assert not differences


def has(name: str) -> bool:
    """Whether the API has a function or a method of this name."""
    try:
        attrgetter(name)(corebound)
    except AttributeError:
        return False
    return True


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - WITHOUT.keys()))
def test_the_command_has_each_argument(command: str) -> None:
    # Of the commands with one function, some have less to say than others.
    same = [other for other in COMMANDS if function_of(other) == function_of(command)]
    known = {name_of(other, option) for other in same for option in options(other)}
    group = command.partition(" ")[0]

    lacking = {
        f"{name}({one}=…)"
        for name, parameters in functions(command)
        for one in parameters.keys() - known
        if not {one, f"{command} {one}", f"{group} {one}"} & ONLY_PYTHON.keys()
    }

    assert not lacking


# The functions that make a request of their arguments, and arguments that are no fields of it.
REQUESTS: Mapping[str, tuple[type[Struct], frozenset[str]]] = {
    "bisect": (BisectRequest, frozenset({"file"})),
    "calibrate": (CalibrateRequest, frozenset()),
    "compare_commits": (CompareCommitsRequest, frozenset()),
    "inspect": (InspectRequest, frozenset()),
    "measure": (FunctionRequest, frozenset({"functions", "names"})),
    "nightly": (NightlyRequest, frozenset()),
    "plan": (PlanRequest, frozenset()),
    "reproduce": (ReproduceRequest, frozenset()),
    "run": (SuiteRequest, frozenset()),
    "tune": (TuneRequest, frozenset({"file"})),
    "verify_tuning": (TuneRequest, frozenset()),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_no_argument_is_lost_on_the_way_to_the_request(name: str) -> None:
    request, others = REQUESTS[name]

    parameters = inspect.signature(attrgetter(name)(corebound)).parameters

    assert parameters.keys() - {*request.__struct_fields__} == others | (
        {"notify"} & parameters.keys()
    )


@pytest.mark.parametrize(
    ("function", "argument", "value"),
    [
        (corebound.run, "launches", 0),
        (corebound.run, "seed", 2**32),
        (corebound.calibrate, "seed", -1),
        (corebound.tune, "max_candidates", 257),
        (partial(corebound.bisect, "a", "b"), "launches", 2),
        (corebound.reproduce, "launches", 1001),
    ],
)
def test_python_has_the_limits_of_the_options(
    function: Callable[..., object], argument: str, value: int
) -> None:
    with pytest.raises(InputError, match=rf"`{argument}=.*`: {value} is not between \d+ and \d+"):
        function("scenario.yaml", **{argument: value})


def test_only_what_exists_is_an_exception() -> None:
    typed = {name for command in COMMANDS for name in options(command)}
    typed |= {f"{command} {name}" for command in COMMANDS for name in options(command)}

    assert NAMES.keys() <= typed
    assert DEFAULTS.keys() <= typed | {"init integrations"}
    assert MORE.keys() <= COMMANDS.keys()
