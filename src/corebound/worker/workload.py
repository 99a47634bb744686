"""A Python function's step as a workload, and what any workload offers.

Every launch waits for what this module imports, so it imports little.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Protocol

from corebound.worker.protocol import EndedBy, Request


class WorkloadError(Exception):
    """The workload cannot be run, for a reason that its author can fix.

    `ended_by` is how a command of it failed.
    """

    def __init__(self, *, what: str, fix: str, ended_by: EndedBy = "error") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.ended_by = ended_by


class Workload(Protocol):
    """The interface that the timing loop needs: step, CPU time, check and teardown.

    Attributes:
        blas: The BLAS that its steps call, if it is not the framework's own.
        work: The work of one step by unit: `flop`, `items`; empty if not reported.
        versions: What else than packages its speed depends on, by name: a model file.
        prepare: Called before each step and not timed; None if nothing is to be prepared.
    """

    blas: str | None
    work: Mapping[str, float]
    versions: Mapping[str, str]
    prepare: Callable[[], object] | None

    @property
    def metrics(self) -> Sequence[Sequence[Sequence[float]]]:
        """For each step, the values and samples of each metric that a command reported."""

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

    metrics: Sequence[Sequence[Sequence[float]]] = ()

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
        self.versions: Mapping[str, str] = getattr(workload, "versions", {})
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
        # Import these only here: they take tens of milliseconds, which other workloads do not need.
        self._runner = importlib.import_module("asyncio").Runner()
        self._is_awaitable = importlib.import_module("inspect").isawaitable
        self._run = self._runner.get_loop().run_until_complete
        super().__init__(self._awaited(setup()), target)
        step, run = self.step, self._run

        def await_step() -> object:
            awaitable = step()
            if not self._is_awaitable(awaitable):
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
        return self._run(result) if self._is_awaitable(result) else result


def _require_finished(result: object, call: str) -> None:
    """Reject the result of a call whose work has not been done yet."""
    if isinstance(result, GeneratorType):
        kind, fix = "a generator", "Consume it within the call, as `list(...)` does."
    elif isinstance(result, AsyncGeneratorType):
        kind = "an asynchronous generator"
        fix = "Consume it with `async for` in an `async def`, with `async: true` beside"
        fix += " `workload` in the scenario."
    elif isinstance(result, Awaitable):
        kind = "a coroutine" if isinstance(result, CoroutineType) else f"a {type(result).__name__}"
        fix = "Write `async: true` beside `workload` in the scenario to have it awaited,"
        fix += " or await it within the call."
    else:
        return
    if isinstance(result, CoroutineType):
        result.close()  # otherwise, Python writes a warning to the log
    raise WorkloadError(what=f"{call} returned {kind}: its work has not been done.", fix=fix)


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
                fix="If it is your own code, put it next to the scenario file or into the project's"
                " package. Otherwise add the package that provides it to the environment.",
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
    if request.target is None:
        raise ValueError("the request names no target")
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
    parameters = importlib.import_module("inspect").signature(function).parameters
    if "gpus" not in parameters and all(
        parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters.values()
    ):
        raise WorkloadError(
            what=f"`{target}` has no parameter `gpus`, so it would compute on the CPU.",
            fix="Add the parameter, the number of GPUs to compute on, or remove `gpus`.",
        )
