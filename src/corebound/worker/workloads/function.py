"""A user's function as the step: what `corebound.measure` times in a fresh process."""

from __future__ import annotations

import importlib
import json
import operator
import os
import pickle
import sys
from pathlib import Path
from typing import Any

from corebound.worker.workload import WorkloadError


def setup(*, functions: str, function: str) -> object:
    """Load one of the functions that `corebound.measure` has listed.

    Args:
        functions: The file with the list: for each name where the function is, and what
            `sys.path` and the working directory were where it was defined.
        function: The name of the function to load.

    Returns:
        The function as the step, or what it returns if it is a setup.

    Raises:
        WorkloadError: The function cannot be loaded.
    """
    file = Path(functions)
    document = json.loads(file.read_text(encoding="utf-8"))
    described = document["functions"][function]
    # In front of what this process has: a revision's modules go before installed ones.
    sys.path[:0] = [folder for folder in described["path"] if folder not in sys.path]
    os.chdir(document["folder"])
    # `corebound.measure` refuses to measure within a measurement, should the module call it.
    os.environ["COREBOUND_MEASURES"] = function
    if described["pickle"] is None:
        loaded = _imported(described["target"], described["revision"])
    else:
        with (file.parent / described["pickle"]).open("rb") as stream:
            loaded = pickle.load(stream)  # noqa: S301  # written by the process that measures
    return loaded() if document["setup"] else _Step(loaded)


class _Step:
    """A step. A function may have attributes of its own that a workload's have a meaning."""

    def __init__(self, step: Any) -> None:
        self.step = step


def _imported(target: str, revision: str | None) -> Any:
    """Import `module:function`, where the function may be an attribute of a class."""
    module_name, _, name = target.partition(":")
    try:
        module = importlib.import_module(module_name)
        function = operator.attrgetter(name)(module)
    except (ModuleNotFoundError, AttributeError) as error:
        where = "" if revision is None else " at that revision"
        raise WorkloadError(
            what=f"`{target}` does not exist{where}: {error}.",
            fix="Compare with a revision that has the function, or with another function."
            if revision
            else "Define it in a module that a new process can import.",
        ) from error
    found = getattr(module, "__file__", None) or ""
    if revision is not None and not Path(found).is_relative_to(revision):
        raise WorkloadError(
            what=f"`{module_name}` of the revision cannot be imported: Python finds {found}.",
            fix="The project needs a build, or an import hook of its installation comes first:"
            " use `corebound compare-commits`, which builds both.",
        )
    return function
