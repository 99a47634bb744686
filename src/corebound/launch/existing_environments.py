"""Finds the interpreters of environments that corebound did not make: virtual, and conda's."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from corebound.planning.models import CannotRun

# How the name of such an environment begins, in a cell.
PYTHON = "python:"
CONDA = "conda:"

# Where installers put conda by default, below the home folder.
_CONDA_ROOTS = ("miniforge3", "mambaforge", "miniconda3", "anaconda3", "micromamba")


def is_existing(name: str) -> bool:
    """Whether a cell's environment is an existing one: `{python: PATH}` or `{conda: NAME}`."""
    return name.startswith((PYTHON, CONDA))


def interpreter(name: str, suite: Path) -> Path | None:
    """The interpreter of an existing environment; None if there is none.

    Args:
        name: The environment's name, as in a cell.
        suite: The scenario's folder, to which paths are relative.
    """
    kind, _, given = name.partition(":")
    if f"{kind}:" == PYTHON or "/" in given:
        return _python_in(_path(given, suite))
    named = (folder for folder in conda_prefixes() if folder.name == given)
    base = (folder for folder in _conda_roots() if given == "base")
    return next(filter(None, map(_python_in, (*named, *base))), None)


def reason_missing(name: str, suite: Path) -> CannotRun:
    """Why an existing environment has no interpreter here, and how to fix that."""
    kind, _, given = name.partition(":")
    if f"{kind}:" == PYTHON or "/" in given:
        return CannotRun(
            what=f"there is no Python interpreter at {_path(given, suite)}.",
            fix="Name the program, or the folder of a virtual environment. Paths are relative to"
            " the scenario file.",
            cause="environment",
        )
    names = ", ".join(sorted({folder.name for folder in conda_prefixes()})) or "none"
    return CannotRun(
        what=f"there is no conda environment `{given}`. Found: {names}.",
        fix="Create it, or name its folder: {conda: /path/to/it}.",
        cause="environment",
    )


def _path(given: str, suite: Path) -> Path:
    # No name has a NUL.
    path = Path(given.replace("\0", ""))
    # The home of an unknown user stays as it is.
    with contextlib.suppress(RuntimeError):
        path = path.expanduser()
    return suite / path


def _python_in(path: Path) -> Path | None:
    """A program itself, or the interpreter in the folder of an environment."""
    program = path / "bin" / "python" if path.is_dir() else path
    # Not resolved: an environment's interpreter is a link, and its path says which one it is.
    return Path(os.path.normpath(program.absolute())) if os.access(program, os.X_OK) else None


def conda_prefixes() -> tuple[Path, ...]:
    """The folders of all conda environments of this user that can be found without conda."""
    return tuple(dict.fromkeys(folder for folder in _conda_candidates() if folder.is_dir()))


def _conda_candidates() -> Iterator[Path]:
    # Conda notes every environment that it creates in this file.
    noted = Path.home() / ".conda" / "environments.txt"
    if noted.is_file():
        yield from map(Path, noted.read_text("utf-8", errors="replace").split("\n"))
    for folders in ("CONDA_ENVS_PATH", "CONDA_ENVS_DIRS"):
        for folder in filter(None, os.environ.get(folders, "").split(os.pathsep)):
            yield from Path(folder).glob("*")
    for root in _conda_roots():
        yield from (root / "envs").glob("*")


def _conda_roots() -> Iterator[Path]:
    if program := os.environ.get("CONDA_EXE") or shutil.which("conda"):
        yield Path(program).resolve().parent.parent
    if root := os.environ.get("MAMBA_ROOT_PREFIX"):
        yield Path(root)
    for name in _CONDA_ROOTS:
        yield Path.home() / name
