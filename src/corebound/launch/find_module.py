"""Finds the file of a module as a worker will, using its environment's Python without imports."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

from corebound.launch.search_path import module_folders
from corebound.planning.models import CannotRun
from corebound.scenario.cell import Framework, package_and_module
from corebound.scenario.function_checks import Module

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
        name: The module's dotted name.
        folder: The scenario file's folder.
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
    """Why an interpreter cannot run cells of a framework; None if it has it, or runs any program.

    Args:
        framework: The framework.
        folder: The scenario file's folder.
        python: The interpreter.
    """
    if framework == "none":
        return None
    package, name = package_and_module(framework)
    module = find(name, folder=folder, python=python)
    if module is None or module.missing is None:
        return None
    return CannotRun(
        what=f"no module named {name} in {python}.",
        fix=f"Install it: `{shlex.quote(str(python))} -m pip install {package}`.",
        cause="environment",
    )


def _locate(
    name: str, folder: Path, python: Path | None, *, is_project: bool
) -> list[str | None] | None:
    """The file of each part of the name that was found.

    None for a part without a file; an empty string for a namespace package.
    """
    argv = [str(python or sys.executable), "-I", *(() if python else ("-S",)), "-c", _LOCATE]
    try:
        process = subprocess.run(
            (
                *(*argv, str(folder), "last" if is_project else "first", name),
                *(() if is_project else map(str, module_folders(folder))),
            ),
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_LONGEST_S,
        )
        # A package may print text when the interpreter starts, so take the last line.
        files: list[str | None] = json.loads(process.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
    return files


def _source(origin: str | None) -> bytes | None:
    if origin is None or not origin.endswith(".py"):
        return None
    try:
        with Path(origin).open("rb") as stream:
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
