"""What to set to get one configuration instead of another, as one line of a shell."""

import itertools
import shlex
from collections.abc import Mapping

from msgspec import Struct

from corebound.analysis.scenario_result import CellResult
from corebound.machine.topology import cpu_list
from corebound.planning.commands import binder
from corebound.planning.environment_variables import intra_op
from corebound.planning.models import Command
from corebound.records.launch_record import Launch
from corebound.scenario.cell import Scalar
from corebound.scenario.fault_wording import join_words

# MKL and OpenBLAS read OMP_NUM_THREADS where their own variable is not set, so an equal value
# needs no line of its own (oneMKL developer guide, "Threading control"; OpenBLAS, README).
_FOLLOWS_OPENMP = ("MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Variables that only corebound's own workers read.
_OWN = "COREBOUND_"
# More processes are not named one by one.
_MOST_NAMED = 4


class WhatToSet(Struct, frozen=True, kw_only=True):
    """What distinguishes the way one configuration is started from that of another.

    Attributes:
        line: What to paste: variables and a prefix before the command, or a parameter; never empty.
        where: Where the line belongs; follows it.
    """

    line: str
    where: str


def what_to_set(cell: CellResult, other: CellResult) -> WhatToSet | None:
    """What to set to get a cell instead of another one.

    It is the difference between the recorded commands and variables of both, or else between their
    threads or parameters.

    Returns:
        None if nothing can be set: both are started alike, or one of them was never launched.
    """
    launch, other_launch = _launched(cell), _launched(other)
    if launch is None or other_launch is None:
        return None
    lines = [
        _shell_line(start, base)
        for start, base in zip(
            _starts(launch), itertools.cycle(_starts(other_launch)), strict=False
        )
    ]
    if any(lines):
        return WhatToSet(line=lines[0] or lines[-1], where=_where(launch, lines))
    call = _thread_call(cell, other)
    if call:
        return WhatToSet(line=call, where="at the start of the program")
    parameters = _differing(dict(cell.cell.parameters), dict(other.cell.parameters))
    if parameters:
        return WhatToSet(line=" ".join(_assignments(parameters)), where="in the workload")
    return None


def _launched(cell: CellResult) -> Launch | None:
    """A launch of the cell that counted and has its commands."""
    return next(
        (launch for launch in cell.launches if launch.status == "ok" and launch.commands), None
    )


class _Start(Struct, frozen=True, kw_only=True):
    """How a process is started: its variables, and the words before the program."""

    env: dict[str, str]
    prefix: tuple[str, ...]


def _starts(launch: Launch) -> list[_Start]:
    """How each process of a launch was started."""
    placement, cell = launch.placement, launch.cell
    launcher = cell.runtime.launcher if cell.binding.mode == "launcher" else ()
    return [
        _Start(
            env=_variables(command),
            prefix=(
                *(binder(placement, placement.slots[slot]) if placement else ()),
                *(("python", *launcher) if launcher else ()),
            ),
        )
        for slot, command in enumerate(launch.commands)
    ]


def _shell_line(start: _Start, base: _Start) -> str:
    """The part of a shell's line before the program that the other start does not have."""
    parts = [f"-u {name}" for name in base.env if name not in start.env]
    parts = ["env", *parts] if parts else []
    parts += _assignments(_differing(start.env, base.env))
    if start.prefix != base.prefix:
        parts.append(shlex.join(start.prefix))
    return " ".join(filter(None, parts))


def _variables(command: Command) -> dict[str, str]:
    """The variables of a command that another program needs too, without those that follow."""
    env = {name: value for name, value in command.env if not name.startswith(_OWN)}
    openmp = env.get("OMP_NUM_THREADS")
    return {
        name: value for name, value in env.items() if name not in _FOLLOWS_OPENMP or value != openmp
    }


def _differing(own: Mapping[str, Scalar], base: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {name: value for name, value in own.items() if base.get(name) != value}


def _where(launch: Launch, lines: list[str]) -> str:
    processes = len(lines)
    if processes == 1:
        # A server starts its own workers.
        return "for the server" if launch.cell.workers > 1 else "before the command"
    if len(set(lines)) == 1:
        return f"before each of the {processes} commands"
    if processes > _MOST_NAMED or launch.placement is None:
        return f"before the first of {processes} commands; the others get CPUs of their own"
    others = [slot.cpus for slot in launch.placement.slots[1:]]
    noun = "CPU" if sum(map(len, others)) == 1 else "CPUs"
    which = "second" if len(others) == 1 else "others"
    listed = join_words([cpu_list(cpus) for cpus in others], "and")
    return f"before the first command, and with {noun} {listed} before the {which}"


def _thread_call(cell: CellResult, other: CellResult) -> str:
    """The call that sets the threads, where no variable does; empty if they are alike."""
    calls = cell.cell.runtime.calls
    if not calls or cell.placement is None or other.placement is None:
        return ""
    threads = intra_op(cell.cell, cell.placement)
    if threads is not None and threads != intra_op(other.cell, other.placement):
        return calls["intra_op"].format(threads)
    between = cell.cell.threads.inter_op
    if between is not None and between != other.cell.threads.inter_op:
        return calls["inter_op"].format(between)
    return ""


def _assignments(values: Mapping[str, Scalar]) -> list[str]:
    return [
        f"{name}={str(value).lower() if isinstance(value, bool) else shlex.quote(str(value))}"
        for name, value in values.items()
    ]
