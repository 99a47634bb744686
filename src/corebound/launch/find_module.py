"""Finds out what an environment's Python has: modules, as a worker will find them, and a BLAS."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from corebound.launch.search_path import module_folders
from corebound.planning.models import CannotRun
from corebound.records import atomic_write
from corebound.scenario.function_checks import Module
from corebound.scenario.runtimes import RUNTIMES, Framework

# The module counts as unknown if Python takes longer than this.
_LONGEST_S = 30.0
# A larger file was not written by hand.
_MOST_BYTES = 1 << 20

# Searches as the worker's own import does, but without importing packages: the finders of
# `sys.meta_path` locate the first part of the name, and each package's folders the rest.
_LOCATE = """
import importlib.util, json, sys
from importlib.machinery import PathFinder
folder, place, name, *others = sys.argv[1:]
sys.path.insert(0 if place == "first" else len(sys.path), folder)
sys.path += others
parts = name.split(".")
found = []
spec = importlib.util.find_spec(parts[0])
for end in range(1, len(parts) + 1):
    if spec is None:
        break
    folders = spec.submodule_search_locations
    is_namespace = folders is not None and spec.origin is None
    found.append("" if is_namespace else spec.origin if spec.has_location else None)
    if end < len(parts):
        spec = folders and PathFinder.find_spec(".".join(parts[: end + 1]), folders)
print()
print(json.dumps(found))
"""


def find(
    name: str, *, folder: Path, python: Path | None, is_project: bool = False
) -> Module | None:
    """Find a module as the worker of a cell will.

    Args:
        python: The environment's interpreter. If it has not been made, None: only the
            scenario's folder and the standard library are searched.
        is_project: Whether the environment holds the project under test, whose modules take
            precedence over those in the folder.

    Returns:
        The module, or None if it cannot be determined.
    """
    first_part = name.partition(".")[0]
    if first_part == "corebound":
        # The worker uses our package, unless the project under test is corebound itself.
        python = None if is_project else Path(sys.executable)
    elif first_part in sys.stdlib_module_names and _is_in_folder(first_part, folder):
        return None  # depends on whether the worker has already imported the other one
    files = _locate(name, folder, python, is_project=is_project)
    if files is None:
        return None
    parts = name.split(".")
    if len(files) == len(parts):
        return Module(source=_source(files[-1]))
    missing = ".".join(parts[: len(files) + 1])
    if not files:
        return Module(
            source=None,
            missing=missing,
            is_certain=python is not None,
            neighbours=_modules_in(folder),
        )
    # A namespace package has no file of its own; a compiled module's content is unknown.
    sources = [b"" if origin == "" else _source(origin) for origin in files]
    if None in sources:
        return None
    return Module(source=b"\n".join(filter(None, sources)), missing=missing)


def reason_without(framework: Framework, *, folder: Path, python: Path) -> CannotRun | None:
    """Why an interpreter cannot run cells of a framework; None if it can. As for `find`."""
    of_module = RUNTIMES[framework].packages
    missing = [name for name in of_module if _locate(name, folder, python, is_project=False) == []]
    if not missing:
        return None
    packages = shlex.join(of_module[name] for name in missing)
    return CannotRun(
        what=f"no module named {' or '.join(missing)} in {python}.",
        fix=f"Install it: `{shlex.quote(str(python))} -m pip install {packages}`.",
        cause="environment",
    )


def _locate(
    name: str, folder: Path, python: Path | None, *, is_project: bool
) -> list[str | None] | None:
    """The file of each part of the name that was found.

    None for a part without a file; an empty string for a namespace package.
    """
    place, others = ("last", ()) if is_project else ("first", module_folders(folder))
    return answer(python, _LOCATE, str(folder), place, name, *map(str, others))


def answer(python: Path | None, code: str, *arguments: str) -> list[Any] | None:
    """The list that Python code prints as JSON; None if it fails.

    Without an interpreter, this one runs it, without its packages.
    """
    argv = [str(python or sys.executable), "-I", *(() if python else ("-S",)), "-c", code]
    try:
        process = subprocess.run(
            (*argv, *arguments),
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_LONGEST_S,
        )
        # A package may print text when the interpreter starts, so take the last line.
        found: list[Any] = json.loads(process.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
    return found


_BLAS_LAYERS = """
import json, numpy, threadpoolctl
pools = threadpoolctl.threadpool_info()
print()
print(json.dumps([pool["threading_layer"] for pool in pools if pool["user_api"] == "blas"]))
"""


def blas_layers(python: Path) -> tuple[str, ...]:
    """How the BLAS that an interpreter's NumPy loads makes threads, as threadpoolctl says it."""
    return tuple(answer(python, _BLAS_LAYERS) or ())


def _source(origin: str | None) -> bytes | None:
    if origin is None or not origin.endswith(".py"):
        return None
    try:
        with atomic_write.opened(Path(origin)) as stream:
            text = stream.read(_MOST_BYTES + 1)
    except OSError:
        return None
    return text if len(text) <= _MOST_BYTES else None


def _is_in_folder(name: str, folder: Path) -> bool:
    return (folder / name).is_dir() or (folder / f"{name}.py").is_file()


def _modules_in(folder: Path) -> tuple[str, ...]:
    try:
        files = sorted(folder.glob("*.py"))
    except OSError:
        return ()
    return tuple(file.stem for file in files if file.stem.isidentifier())
