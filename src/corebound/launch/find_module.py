"""Where a worker will find a module: asked of its environment's Python, which imports nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from corebound.scenario.module_source import Module

# A Python that takes longer to start than this tells nothing.
_LONGEST_S = 30.0
# Whatever is larger was not written by hand.
_MOST_BYTES = 1 << 20

# As the worker's own import does, but that packages are searched instead of imported: the
# finders of `sys.meta_path` for the first part of the name, each package's folders for the rest.
_LOOK = """
import importlib.util, json, sys
from importlib.machinery import PathFinder
folder, place, name = sys.argv[1:]
sys.path.insert(0 if place == "first" else len(sys.path), folder)
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
        name: Its dotted name.
        folder: That of the scenario file.
        python: The environment's interpreter; None where it has not been made, so that only
            the scenario's folder and the standard library are searched.
        is_project: Whether the environment is of the project under test, whose modules come
            before those of the folder.

    Returns:
        The module, or None where it cannot be told.
    """
    top = name.partition(".")[0]
    if top == "corebound":
        # The worker has ours, unless the project under test is corebound itself.
        python = None if is_project else Path(sys.executable)
    elif top in sys.stdlib_module_names and _is_beside(top, folder):
        return None  # whether the worker has imported the other one by then is its own affair
    found = _answer(name, folder, python, is_project=is_project)
    if found is None:
        return None
    parts = name.split(".")
    if len(found) == len(parts):
        return Module(source=_source(found[-1]))
    missing = ".".join(parts[: len(found) + 1])
    if not found:
        return Module(
            source=None,
            missing=missing,
            is_certain=python is not None,
            beside=_modules_in(folder),
        )
    # A package of several folders has no file of its own; one that is compiled may do anything.
    sources = [b"" if origin == "" else _source(origin) for origin in found]
    if None in sources:
        return None
    return Module(source=b"\n".join(filter(None, sources)), missing=missing)


def _answer(
    name: str, folder: Path, python: Path | None, *, is_project: bool
) -> list[str | None] | None:
    """The file of each part of the name that was found.

    None for a part that has no file; empty for a package without a file of its own.
    """
    words = [str(python or sys.executable), "-I", *(() if python else ("-S",)), "-c", _LOOK]
    try:
        done = subprocess.run(
            (*words, str(folder), "last" if is_project else "first", name),
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_LONGEST_S,
        )
        # A package may print as the interpreter starts.
        found: list[str | None] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
    return found


def _source(origin: str | None) -> bytes | None:
    if origin is None or not origin.endswith(".py"):
        return None
    try:
        with Path(origin).open("rb") as stream:
            text = stream.read(_MOST_BYTES + 1)
    except OSError:
        return None
    return text if len(text) <= _MOST_BYTES else None


def _is_beside(top: str, folder: Path) -> bool:
    return (folder / top).is_dir() or (folder / f"{top}.py").is_file()


def _modules_in(folder: Path) -> tuple[str, ...]:
    try:
        files = sorted(folder.glob("*.py"))
    except OSError:
        return ()
    return tuple(file.stem for file in files if file.stem.isidentifier())
