"""Measure Python functions against one another, each launch in a fresh process."""

import inspect
import json
import operator
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

from corebound import git
from corebound.errors import InputError, LaunchError
from corebound.launch import scratch
from corebound.scenario.fault_wording import join_words
from corebound.workflow import prepare
from corebound.workflow.execute import Budget, Reporter, RunResult, execute_run, hold_host
from corebound.workflow.host_checks import preflight
from corebound.workflow.prepare import RunRequest
from corebound.workflow.resolve_refs import resolve_revision

NAME = "measured-functions"
# Beside the scenario; a pickled function has a file of its own.
_LIST = "functions.json"
_WORKLOAD = "corebound.worker.workloads.function:setup"
_MOST_LOG_LINES = 12


class MeasuredFunction(Struct, frozen=True, kw_only=True):
    """A function, and how a new process gets it.

    Attributes:
        name: Its name in the results.
        target: `module:function` that a new process imports; None if it is pickled.
        pickled: The function itself, by value; None if it is imported.
        path: What `sys.path` has to contain.
        revision: The folder with the revision of the project that the module has to come from;
            None if it is the module that this process has.
        is_async: Whether calling it returns a coroutine.
    """

    name: str
    target: str | None
    pickled: bytes | None
    path: tuple[str, ...]
    revision: Path | None = None
    is_async: bool = False


class FunctionRequest(Struct, frozen=True, kw_only=True):
    """How to measure functions.

    Attributes:
        setup: Whether each function prepares and returns its step, instead of being the step.
        budget_s: End after this many seconds.
        margin: The largest share that counts as equal.
        launches: The least and the most launches of each function.
        settings: Other keys of a scenario's top level, such as `binding`, `threads` and `env`.
        wait_s: How long to wait for another run on this host, in seconds.
        records: Where to keep the records; None keeps none.
    """

    setup: bool = False
    budget_s: float = 30.0
    margin: float = 0.02
    launches: tuple[int, int] = (6, 30)
    settings: Mapping[str, Any] = {}
    wait_s: float = 60.0
    records: Path | None = None


def describe_function(function: Callable[..., object], name: str | None = None) -> MeasuredFunction:
    """Find out how a new process gets a function.

    A function at the top level of an importable module is imported there. Others, such as those
    of a notebook, of `__main__`, lambdas and `functools.partial`, are pickled by value.

    Args:
        name: Its name in the results; None uses its own.

    Raises:
        InputError: It is not a function, or cannot be pickled.
    """
    if not callable(function):
        raise InputError(
            what=f"{function!r} cannot be called.",
            where="corebound.measure",
            fix="Pass functions without arguments; functools.partial adds arguments.",
        )
    inner = getattr(function, "func", function)
    own_name = getattr(inner, "__qualname__", type(function).__name__)
    target = _target(function)
    return MeasuredFunction(
        name=name or own_name.rpartition("<locals>.")[2],
        target=target,
        pickled=_pickled(function, own_name) if target is None else None,
        path=tuple(str(Path(folder or ".").resolve()) for folder in sys.path),
        is_async=inspect.iscoroutinefunction(inner),
    )


def _target(function: Callable[..., object]) -> str | None:
    """`module:function` if importing that gives the function; else None."""
    module_name, name = (
        getattr(function, "__module__", None),
        getattr(function, "__qualname__", None),
    )
    module = sys.modules.get(module_name or "")
    if not name or module_name == "__main__" or getattr(module, "__spec__", None) is None:
        return None
    try:
        found = operator.attrgetter(name)(module)
    except AttributeError:
        return None
    return f"{module_name}:{name}" if found is function else None


def _pickled(function: Callable[..., object], name: str) -> bytes:
    import cloudpickle  # noqa: PLC0415  # most functions are imported instead

    try:
        data: bytes = cloudpickle.dumps(function)
    except Exception as error:  # objects raise what they like
        raise InputError(
            what=f"`{name}` cannot be sent to another process: {error}.",
            where="corebound.measure",
            fix="Create what it uses inside it, or pass a function that does with setup=True.",
        ) from error
    return data


def measure_functions(
    functions: Sequence[MeasuredFunction], request: FunctionRequest, reporter: Reporter
) -> RunResult:
    """Measure functions block by block, each launch in a new process of this interpreter.

    Args:
        functions: At least two with different names; the first is the baseline.
        request: How to measure them.

    Raises:
        InputError: There are too few functions, or settings are invalid.
        LaunchError: A function failed.
        HostError: Another run holds the host.
    """
    _check(functions)
    with scratch.scratch_folder() as temporary:
        records = request.records or temporary / "records"
        file = _write_scenario(temporary / "functions", functions, request)
        with hold_host(reporter.notify, wait_s=request.wait_s):
            run_request = RunRequest(files=(file,), records=records)
            budget = Budget(request.budget_s, run_request.begin_s)
            prepared = prepare.prepare_run(run_request, reporter.notify)
            # What this process was started with is not how to measure this again.
            run = replace(prepared.run, argv=("corebound", "run", str(file)))
            prepared = preflight(replace(prepared, run=run), reporter)
            result = execute_run(prepared, budget, reporter)
    _require_results(result)
    return result


def _check(functions: Sequence[MeasuredFunction]) -> None:
    names = [function.name for function in functions]
    what = ""
    if len(names) < 2:
        what = "at least two functions are compared."
    elif repeated := {name for name in names if names.count(name) > 1}:
        what = f"two functions have the same name, {join_words(sorted(repeated))}."
    elif len({function.is_async for function in functions}) > 1:
        what = "some of the functions are coroutine functions, and others are not."
    if what:
        raise InputError(
            what=what,
            where="corebound.measure",
            fix="Pass the baseline first, then what is compared with it; `names=` names them.",
        )


def _write_scenario(
    folder: Path, functions: Sequence[MeasuredFunction], request: FunctionRequest
) -> Path:
    """Write the functions and their scenario; returns the scenario's file."""
    folder.mkdir()
    described = {}
    for number, function in enumerate(functions):
        pickle_name = None
        if function.pickled is not None:
            pickle_name = f"{number}.pickle"
            (folder / pickle_name).write_bytes(function.pickled)
        described[function.name] = {
            "target": function.target,
            "pickle": pickle_name,
            "path": function.path,
            "revision": str(function.revision) if function.revision else None,
        }
    listed = {"setup": request.setup, "folder": os.getcwd(), "functions": described}  # noqa: PTH109
    (folder / _LIST).write_text(json.dumps(listed), encoding="utf-8")
    baseline, *others = (function.name for function in functions)
    document = {
        "schema": 1,
        "name": NAME,
        "title": f"{join_words(others, 'and')} against {baseline}",
        "question": f"How fast is {join_words(others)} compared with {baseline}?",
        **request.settings,
        "workload": _WORKLOAD,
        "async": functions[0].is_async,
        "parameters": {"functions": str(folder / _LIST)},
        "matrix": {"parameters": {"function": [baseline, *others]}},
        "baseline": {"parameters": {"function": baseline}},
        "measure": {
            "margin": request.margin,
            "launches": {"min": request.launches[0], "max": request.launches[1]},
            "duplicates": "each",
        },
    }
    document.setdefault("environment", "host")
    file = folder / f"{NAME}.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return file


def _require_results(result: RunResult) -> None:
    """Raise the reason of the first failed launch of a function without any result."""
    measured = {launch.cell.key for launch in result.launches if launch.status == "ok"}
    for launch in result.launches:
        if launch.cell.key not in measured:
            name = dict(launch.cell.axes)["function"]
            log = "\n".join(f"  {line}" for line in launch.log.splitlines()[-_MOST_LOG_LINES:])
            raise LaunchError(
                what=f"{launch.reason or launch.status}" + (f"\n{log}" if log else ""),
                where=f"function {name}",
                fix=f"Call `{name}` once in this process, or read the traceback above."
                if log
                else launch.fix or "Call the function once in this process.",
            )


_WHERE = "baseline"


def function_at(function: Callable[..., object], revision: str, folder: Path) -> MeasuredFunction:
    """Check a revision out, and describe the function of the same name in it.

    The checkout has the files of the revision and no git metadata; the repository is only read.

    Args:
        function: A function of a module in a git repository.
        revision: A commit, a tag or a branch of that repository.
        folder: An empty folder that outlives the measurement.

    Raises:
        InputError: The function is not of a repository, or there is no such revision.
        HostError: git is not installed.
    """
    described = describe_function(function)
    if described.target is None:
        raise InputError(
            what=f"`{described.name}` has no module that a revision could have too.",
            where=_WHERE,
            fix="Define it at the top level of a module, or pass a function as the baseline.",
        )
    file = Path(getattr(sys.modules[function.__module__], "__file__", None) or "").resolve()
    top = _repository(file, described.name)
    sha = resolve_revision(revision, top)
    if sha is None:
        raise InputError(
            what=f"`{revision}` is not a revision of {top}.",
            where=_WHERE,
            fix="Name a commit, a tag or a branch; a CI checkout may have to fetch it first:"
            f" `git fetch origin {revision}`.",
        )
    _check_out(top, sha, folder)
    root = file.parents[function.__module__.count(".") + (file.name == "__init__.py")]
    own = [str(root), *(path for path in described.path if path != str(root))]
    return replace(
        described,
        name=f"{described.name}@{revision}",
        path=tuple(_moved(path, top, folder) for path in own),
        revision=folder,
    )


def _repository(file: Path, name: str) -> Path:
    top = git.query(file.parent, "rev-parse", "--show-toplevel") if file.name else None
    inside = top and git.query(file.parent, "ls-files", "--error-unmatch", file.name)
    if not top or inside is None:
        raise InputError(
            what=f"`{name}` is not in a git repository: it is imported from {file}.",
            where=_WHERE,
            fix="Install the project editable (`pip install -e .`), and commit the file.",
        )
    return Path(top).resolve()


def _check_out(top: Path, sha: str, folder: Path) -> None:
    """Write the files of a commit, with an index of its own."""
    index = {"GIT_INDEX_FILE": str(folder.with_name(f"{folder.name}.index"))}
    for arguments in (
        ("read-tree", sha),
        ("checkout-index", "--all", "--quiet", f"--prefix={folder}/"),
    ):
        result = git.run(top, *arguments, environment=index)
        if not result.succeeded:
            raise InputError(
                what=f"the revision cannot be checked out: {result.error}.",
                where=str(top),
                fix="Run `git fsck`, or fetch the revision.",
            )


def _moved(path: str, top: Path, folder: Path) -> str:
    """A folder of the repository as that of the checkout; an environment in it stays."""
    if not Path(path).is_relative_to(top) or Path(path).is_relative_to(sys.prefix):
        return path
    return str(folder / Path(path).relative_to(top))
