"""Builds the workload of a request: a Python function's step, or an external command."""

from __future__ import annotations

import importlib
import inspect
import os
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from corebound.worker.protocol import Request


class WorkloadError(Exception):
    """The workload cannot be run, for a reason that its author can fix."""

    def __init__(self, *, what: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix


class Workload(Protocol):
    """The interface that the timing loop needs: step, CPU time, check and teardown.

    Attributes:
        blas: The BLAS that its steps call, if it is not the framework's own.
        work: The work of one step by unit: `flop`, `items`; empty if not reported.
        prepare: Called before each step and not timed; None if nothing is to be prepared.
    """

    blas: str | None
    work: Mapping[str, float]
    prepare: Callable[[], object] | None

    def step(self) -> object:
        """Do the work once."""

    def cpu_ns(self) -> int:
        """CPU time used for steps so far."""

    def check(self, result: object) -> None:
        """Raise WorkloadError if a step's result is wrong."""

    def teardown(self) -> None:
        """Release what set-up took."""

    def allowed(self) -> list[list[int]] | None:
        """Every CPU affinity set seen of a command's process, or None."""


class FunctionWorkload:
    """A workload whose step a user's or a built-in function created in this process."""

    def __init__(self, workload: object, target: str) -> None:
        _require_finished(workload, f"`{target}`")
        step = getattr(workload, "step", workload)
        if not callable(step):
            raise WorkloadError(
                what=f"`{target}` returned {type(workload).__name__}, which cannot be called.",
                fix="Return the step as a function, or an object with a `step` method.",
            )
        self.step: Callable[[], object] = step
        self._target = target
        self._check: Callable[[object], object] = getattr(workload, "check", lambda _result: None)
        self._teardown: Callable[[], object] = getattr(workload, "teardown", lambda: None)
        # A workload with its own processes includes their CPU time.
        self.cpu_ns: Callable[[], int] = getattr(workload, "cpu_ns", time.process_time_ns)
        self.blas: str | None = getattr(workload, "blas", None)
        self.work: Mapping[str, float] = getattr(workload, "work", dict)()
        self.prepare: Callable[[], object] | None = getattr(workload, "prepare", None)

    def check(self, result: object) -> None:
        """Reject a step that returned unfinished work, then run the workload's own check."""
        _require_finished(result, f"a step of `{self._target}`")
        _require_finished(self._check(result), f"`check` of `{self._target}`")

    def teardown(self) -> None:
        """Release what set-up took."""
        _require_finished(self._teardown(), f"`teardown` of `{self._target}`")

    def allowed(self) -> None:
        """None, because the threads of this process are sampled from outside."""


class AsyncWorkload(FunctionWorkload):
    """A workload whose step is awaited, on an event loop shared by setup, check and teardown.

    The time of a step includes the cost of the event loop: one task and one turn of the loop,
    about 10 µs as measured with a step that does nothing.
    """

    def __init__(self, setup: Callable[[], object], target: str) -> None:
        # Import it only here: it takes tens of milliseconds, which other workloads do not need.
        self._runner = importlib.import_module("asyncio").Runner()
        self._run = self._runner.get_loop().run_until_complete
        super().__init__(self._awaited(setup()), target)
        step, run = self.step, self._run

        def await_step() -> object:
            awaitable = step()
            if not inspect.isawaitable(awaitable):
                _require_finished(awaitable, f"a step of `{target}`")
                raise WorkloadError(
                    what=f"a step of `{target}` returned {type(awaitable).__name__}, "
                    "which cannot be awaited.",
                    fix="Make it `async def`, or remove `async: true` from the scenario.",
                )
            return run(awaitable)

        self.step = await_step
        check, teardown, prepare = self._check, self._teardown, self.prepare
        self._check = lambda result: self._awaited(check(result))
        self._teardown = lambda: self._awaited(teardown())
        if prepare is not None:
            self.prepare = lambda: self._awaited(prepare())

    def teardown(self) -> None:
        """Tear down the workload, cancel the remaining tasks and close the event loop."""
        super().teardown()
        self._runner.close()

    def _awaited(self, result: object) -> object:
        return self._run(result) if inspect.isawaitable(result) else result


def _require_finished(result: object, call: str) -> None:
    """Reject the result of a call whose work has not been done yet.

    Raises:
        WorkloadError: the result is a generator, a coroutine or another awaitable.
    """
    if inspect.isgenerator(result):
        kind, fix = "a generator", "Consume it within the call, as `list(...)` does."
    elif inspect.isasyncgen(result):
        kind = "an asynchronous generator"
        fix = "Consume it with `async for` in an `async def`, with `async: true` beside"
        fix += " `workload` in the scenario."
    elif inspect.isawaitable(result):
        kind = "a coroutine" if inspect.iscoroutine(result) else f"a {type(result).__name__}"
        fix = "Write `async: true` beside `workload` in the scenario to have it awaited,"
        fix += " or await it within the call."
    else:
        return
    if inspect.iscoroutine(result):
        result.close()  # otherwise, Python writes a warning to the log
    raise WorkloadError(what=f"{call} returned {kind}: its work has not been done.", fix=fix)


class CommandWorkload:
    """An external command, timed from start to exit.

    Its standard output is discarded, and its standard error goes to the launch's log.
    The process is not reaped until `cpu_ns`, which the loop calls after it has read the
    wall clock. Inspecting the process therefore adds nothing to the measured time.
    """

    blas: str | None = None
    work: Mapping[str, float] = MappingProxyType({})

    def __init__(
        self,
        argv: list[str],
        *,
        prepare: list[str] | None = None,
        cleanup: list[str] | None = None,
    ) -> None:
        self._program = _program(argv[0])
        self._argv = argv
        for other in (prepare, cleanup):
            if other is not None:
                _program(other[0])
        self.prepare: Callable[[], object] | None = (
            None if prepare is None else partial(_run_untimed, prepare)
        )
        self._cleanup = cleanup
        self._devnull = os.open(os.devnull, os.O_RDWR)
        self._pid: int | None = None
        self._cpu_ns = 0
        self._affinities: set[frozenset[int]] = set()

    def step(self) -> None:
        """Start the command and wait until it has ended, without reaping it."""
        self._pid = os.posix_spawn(
            self._program,
            self._argv,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, self._devnull, 0),
                (os.POSIX_SPAWN_DUP2, self._devnull, 1),
            ],
        )
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)

    def cpu_ns(self) -> int:
        """Reap the ended command; add its CPU time, including children that it waited for.

        Raises:
            WorkloadError: the command did not exit with 0.
        """
        if self._pid is not None:
            self._affinities.add(frozenset(os.sched_getaffinity(self._pid)))
            _pid, status, usage = os.wait4(self._pid, 0)
            self._pid = None
            self._cpu_ns += round((usage.ru_utime + usage.ru_stime) * 1e9)
            _require_success(self._argv, os.waitstatus_to_exitcode(status))
        return self._cpu_ns

    def check(self, _result: object) -> None:
        """Do nothing: a command's exit code shows whether it succeeded."""

    def teardown(self) -> None:
        """Run the command that cleans up; close the descriptor of the null device."""
        os.close(self._devnull)
        if self._cleanup is not None:
            _run_untimed(self._cleanup)

    def allowed(self) -> list[list[int]]:
        """Every distinct CPU affinity set that the command's process had when it ended."""
        return sorted(sorted(cpus) for cpus in self._affinities)


def _program(name: str) -> str:
    """The path of a program.

    Raises:
        WorkloadError: it was not found, or it cannot be executed.
    """
    if (program := shutil.which(name)) is not None:
        return program
    if Path(name).is_file():
        raise WorkloadError(
            what=f"`{name}` is not executable.", fix=f"Run `chmod +x {shlex.quote(name)}`."
        )
    raise WorkloadError(
        what=f"the command `{name}` was not found.",
        fix="Install it, or give its path, relative to the scenario file. PATH is that of the"
        " `corebound` command.",
    )


def _run_untimed(words: list[str]) -> None:
    """Run a command that is not timed; its output goes to the launch's log.

    Raises:
        WorkloadError: it did not exit with 0.
    """
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        pid = os.posix_spawn(
            _program(words[0]),
            words,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, 2, 1)],
        )
    finally:
        os.close(null)
    _require_success(words, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _require_success(words: list[str], code: int) -> None:
    if code == 0:
        return
    if code > 0:
        ending = f"exited with {code}"
    else:
        ending = f"was killed by signal {-code} ({signal.strsignal(-code)})"
    raise WorkloadError(
        what=f"the command `{' '.join(words)}` {ending}.",
        fix="Its error messages are in the launch's log. A workload must exit with 0.",
    )


def find_function(target: str) -> Callable[..., object]:
    """Import `module:function`.

    Raises:
        WorkloadError: there is no such module or function.
    """
    module_name, _, function_name = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and not module_name.startswith(error.name):
            raise WorkloadError(
                what=f"`{module_name}` needs `{error.name}`, which this environment lacks.",
                fix=f"Add it to the environment's requirements file: {error.name}==VERSION.",
            ) from error
        raise WorkloadError(
            what=f"no module `{module_name}` was found.",
            fix="Put it next to the scenario file, or add its package to the environment.",
        ) from error
    function: object = getattr(module, function_name, None)
    if not callable(function):
        raise WorkloadError(
            what=f"`{module_name}` has no function `{function_name}`.",
            fix="Name a function of that module that returns the step.",
        )
    return function


def make_workload(request: Request) -> Workload:
    """Set up the workload of a request.

    Raises:
        WorkloadError: the setup failed for a reason that the workload's author can fix.
    """
    if request.command is not None:
        return CommandWorkload(request.command, prepare=request.prepare, cleanup=request.cleanup)
    if request.target is None:
        raise ValueError("a request names a target or a command")
    function = find_function(request.target)
    arguments = dict(request.parameters)
    if request.gpus:
        _require_gpus_parameter(function, request.target)
        arguments["gpus"] = request.gpus
    if request.awaits:
        return AsyncWorkload(lambda: function(**arguments), request.target)
    return FunctionWorkload(function(**arguments), request.target)


def _require_gpus_parameter(function: Callable[..., object], target: str) -> None:
    """Reject a function that would ignore the GPUs that its cell requests."""
    parameters = inspect.signature(function).parameters
    if "gpus" not in parameters and all(
        parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters.values()
    ):
        raise WorkloadError(
            what=f"`{target}` has no parameter `gpus`, so it would compute on the CPU.",
            fix="Add the parameter, the number of GPUs to compute on, or remove `gpus`.",
        )
