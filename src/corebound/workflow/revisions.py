"""A function as it is at a revision of its git repository."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from corebound import git
from corebound.errors import InputError
from corebound.workflow.measure_functions import MeasuredFunction, describe_function
from corebound.workflow.resolve_refs import resolve_revision

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
