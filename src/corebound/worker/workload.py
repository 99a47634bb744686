"""From a request to something with a step: a function's, or a whole command."""

from __future__ import annotations

import importlib
import inspect
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from corebound.worker.protocol import Request


class WorkloadError(Exception):
    """The workload cannot be run, for a reason its author can mend."""

    def __init__(self, *, what: str, mend: str) -> None:
        super().__init__(what)
        self.what = what
        self.mend = mend


class Workload(Protocol):
    """What the loop needs: a step, the CPU time it has used, a check, an end.

    Attributes:
        blas: The BLAS its steps call, where that is not the framework's own.
        work: What one step does, counted: `flop`, `items`; empty if it does not say.
    """

    blas: str | None
    work: Mapping[str, float]

    def step(self) -> object:
        """Do the work once."""

    def cpu_ns(self) -> int:
        """CPU time used for steps so far."""

    def check(self, result: object) -> None:
        """Raise WorkloadError if a step's result is wrong."""

    def teardown(self) -> None:
        """Release what set-up took."""

    def allowed(self) -> list[list[int]] | None:
        """Every set of CPUs a command's process was allowed, or None."""


class FunctionWorkload:
    """A step that a user's or a built-in function set up in this process."""

    def __init__(self, made: object, target: str) -> None:
        _require_done(made, f"`{target}`")
        step = getattr(made, "step", made)
        if not callable(step):
            raise WorkloadError(
                what=f"`{target}` returned {type(made).__name__}, which cannot be called.",
                mend="Return the step as a function, or an object with a `step` method.",
            )
        self.step: Callable[[], object] = step
        self._target = target
        self._check: Callable[[object], object] = getattr(made, "check", lambda _result: None)
        self._teardown: Callable[[], object] = getattr(made, "teardown", lambda: None)
        # One with processes of its own counts their time too.
        self.cpu_ns: Callable[[], int] = getattr(made, "cpu_ns", time.process_time_ns)
        self.blas: str | None = getattr(made, "blas", None)
        self.work: Mapping[str, float] = getattr(made, "work", dict)()

    def check(self, result: object) -> None:
        """Refuse a step that only returned what would do the work; then let the author judge."""
        _require_done(result, f"a step of `{self._target}`")
        _require_done(self._check(result), f"`check` of `{self._target}`")

    def teardown(self) -> None:
        """Release what set-up took."""
        _require_done(self._teardown(), f"`teardown` of `{self._target}`")

    def allowed(self) -> None:
        """Nothing: threads of this process are watched from outside."""


class AsyncWorkload(FunctionWorkload):
    """A step that is awaited, on an event loop that set-up, check and teardown share.

    The time of a step includes what the loop costs, a task and one turn of the loop: some
    10 µs, as measured with a step that does nothing.
    """

    def __init__(self, setup: Callable[[], object], target: str) -> None:
        # Imported only here: it takes tens of milliseconds, which no other workload pays.
        self._runner = importlib.import_module("asyncio").Runner()
        self._run = self._runner.get_loop().run_until_complete
        super().__init__(self._awaited(setup()), target)
        step, run = self.step, self._run

        def awaited() -> object:
            made = step()
            if not inspect.isawaitable(made):
                _require_done(made, f"a step of `{target}`")
                raise WorkloadError(
                    what=f"a step of `{target}` returned {type(made).__name__}, "
                    "which cannot be awaited.",
                    mend="Make it `async def`, or remove `async: true` from the scenario.",
                )
            return run(made)

        self.step = awaited
        check, teardown = self._check, self._teardown
        self._check = lambda result: self._awaited(check(result))
        self._teardown = lambda: self._awaited(teardown())

    def teardown(self) -> None:
        """Release what set-up took, then end what still runs on the loop, and the loop."""
        super().teardown()
        self._runner.close()

    def _awaited(self, made: object) -> object:
        return self._run(made) if inspect.isawaitable(made) else made


def _require_done(result: object, whose: str) -> None:
    """Refuse what a call returned where its work is still to be done.

    Raises:
        WorkloadError: it is a coroutine, a generator or something else to be awaited.
    """
    if inspect.isgenerator(result):
        kind, mend = "a generator", "Consume it within the call, as `list(...)` does."
    elif inspect.isasyncgen(result):
        kind = "an asynchronous generator"
        mend = "Consume it with `async for` in an `async def`, with `async: true` beside"
        mend += " `workload` in the scenario."
    elif inspect.isawaitable(result):
        kind = "a coroutine" if inspect.iscoroutine(result) else f"a {type(result).__name__}"
        mend = "Write `async: true` beside `workload` in the scenario to have it awaited,"
        mend += " or wait for it within the call."
    else:
        return
    if inspect.iscoroutine(result):
        result.close()  # or Python warns of it in the log
    raise WorkloadError(what=f"{whose} returned {kind}: its work has not been done.", mend=mend)


class CommandWorkload:
    """A command timed from start to exit.

    Its standard output is thrown away, its standard error is the launch's log.
    Its process is left unreaped until `cpu_ns`, which the loop calls after the
    wall clock has stopped: only then is it looked at, so the look costs nothing
    that is measured.
    """

    blas: str | None = None
    work: Mapping[str, float] = MappingProxyType({})

    def __init__(self, words: list[str]) -> None:
        program = shutil.which(words[0])
        if program is None:
            raise WorkloadError(
                what=f"the command `{words[0]}` was not found.",
                mend="Install it, or name it by its path; PATH is the one corebound was given.",
            )
        self._program = program
        self._words = words
        self._devnull = os.open(os.devnull, os.O_RDWR)
        self._pid: int | None = None
        self._cpu_ns = 0
        self._seen: set[frozenset[int]] = set()

    def step(self) -> None:
        """Start the command and wait until it has ended, without reaping it."""
        self._pid = os.posix_spawn(
            self._program,
            self._words,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, self._devnull, 0),
                (os.POSIX_SPAWN_DUP2, self._devnull, 1),
            ],
        )
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)

    def cpu_ns(self) -> int:
        """Reap the command just ended; add its CPU time, its waited-for children's too.

        Raises:
            WorkloadError: it did not exit with 0.
        """
        if self._pid is not None:
            self._seen.add(frozenset(os.sched_getaffinity(self._pid)))
            _pid, status, usage = os.wait4(self._pid, 0)
            self._pid = None
            self._cpu_ns += round((usage.ru_utime + usage.ru_stime) * 1e9)
            _require_success(self._words, os.waitstatus_to_exitcode(status))
        return self._cpu_ns

    def check(self, _result: object) -> None:
        """Nothing: a command says by its exit code whether it did its work."""

    def teardown(self) -> None:
        """Close what was opened."""
        os.close(self._devnull)

    def allowed(self) -> list[list[int]]:
        """Every set of CPUs that the command's process was allowed as it ended."""
        return sorted(sorted(cpus) for cpus in self._seen)


def _require_success(words: list[str], code: int) -> None:
    if code == 0:
        return
    if code > 0:
        how = f"exited with {code}"
    else:
        how = f"was ended by signal {-code} ({signal.strsignal(-code)})"
    raise WorkloadError(
        what=f"the command `{' '.join(words)}` {how}.",
        mend="Its own words stand in the launch's log; a workload must exit with 0.",
    )


def find(target: str) -> Callable[..., object]:
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
                mend=f"Add it to the environment's requirements file: {error.name}==VERSION.",
            ) from error
        raise WorkloadError(
            what=f"no module `{module_name}` was found.",
            mend="Put it beside the scenario file, or add its package to the environment.",
        ) from error
    function: object = getattr(module, function_name, None)
    if not callable(function):
        raise WorkloadError(
            what=f"`{module_name}` has no function `{function_name}`.",
            mend="Name a function of that module that returns the step.",
        )
    return function


def make(request: Request) -> Workload:
    """Set the workload up.

    Raises:
        WorkloadError: it cannot be, and its author can mend it.
    """
    if request.command is not None:
        return CommandWorkload(request.command)
    if request.target is None:
        raise ValueError("a request names a target or a command")
    function = find(request.target)
    told = dict(request.parameters)
    if request.gpus:
        _require_gpus_told(function, request.target)
        told["gpus"] = request.gpus
    if request.awaits:
        return AsyncWorkload(lambda: function(**told), request.target)
    return FunctionWorkload(function(**told), request.target)


def _require_gpus_told(function: Callable[..., object], target: str) -> None:
    """Refuse a function that would take no notice of the GPUs that its cell asks for."""
    taken = inspect.signature(function).parameters
    if "gpus" not in taken and all(one.kind is not one.VAR_KEYWORD for one in taken.values()):
        raise WorkloadError(
            what=f"`{target}` has no parameter `gpus`, so it would compute on the CPU.",
            mend="Give it one, which says on how many GPUs to compute, or leave `gpus` out.",
        )
