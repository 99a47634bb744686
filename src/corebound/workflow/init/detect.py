"""What `corebound init` detects about a repository: name, branch, and whether it is installable."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from corebound import git
from corebound.errors import InputError

# Files by which pip can install a project.
_INSTALLABLE = ("pyproject.toml", "setup.py", "setup.cfg")


class Repository(Struct, frozen=True, kw_only=True):
    """The repository to measure.

    Attributes:
        folder: Its folder.
        project: The project's name.
        branch: The checked-out branch, or `main` if there is none.
        lacks: What is missing before asv can build commits: a git repository with this folder at
            its top, a commit, or a file by which pip installs. Empty if nothing is missing.
        has_remote: Whether the repository has a remote to update from.
    """

    folder: Path
    project: str
    branch: str
    lacks: tuple[str, ...]
    has_remote: bool

    @property
    def is_built(self) -> bool:
        """Whether asv can build the repository's commits."""
        return not self.lacks


def look(folder: Path) -> Repository:
    """Inspect a folder, which need not be a git repository."""
    folder = folder.resolve()
    top = git.query(folder, "rev-parse", "--show-toplevel")
    commit = git.query(folder, "rev-parse", "--verify", "HEAD")
    needs = {
        "a git repository of its own": top is not None and Path(top) == folder,
        "a commit": commit is not None,
        _INSTALLABLE[0]: any((folder / name).is_file() for name in _INSTALLABLE),
    }
    return Repository(
        folder=folder,
        project=folder.name or "project",
        branch=git.query(folder, "branch", "--show-current") or "main",
        lacks=tuple(what for what, is_there in needs.items() if not is_there),
        has_remote=bool(git.query(folder, "remote")),
    )


# Folders that may contain packages, relative to a repository.
ROOTS = ("", "src", "lib", "python")
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


class Target(Struct, frozen=True, kw_only=True):
    """A function as `module:name`, and the repository folder that contains its package."""

    module: str
    name: str
    root: str

    @property
    def label(self) -> str:
        """The function as users write it."""
        return f"{self.module}:{self.name}"


def found(label: str, repository: Path) -> Target:
    """Find `package.module:function`, which is called without arguments.

    Raises:
        InputError: The label is malformed, or the function is missing or needs arguments.
    """
    if not _NAME.fullmatch(label):
        raise _refused(label, "this names no function.", "Write it like package.module:function.")
    module, _, name = label.partition(":")
    for root in ROOTS:
        base = repository / root / module.replace(".", "/")
        for file in (base.with_suffix(".py"), base / "__init__.py"):
            if file.is_file():
                _check(label, name, file)
                return Target(module=module, name=name, root=root)
    looked = ", ".join(root or "." for root in ROOTS)
    raise _refused(
        label, f"there is no module {module} in {repository}.", f"Looked for it in: {looked}."
    )


def _check(label: str, name: str, file: Path) -> None:
    try:
        tree = ast.parse(file.read_bytes(), filename=str(file))
    except (SyntaxError, ValueError) as error:
        raise _refused(label, f"{file} cannot be read: {error}.", "Mend it first.") from None
    node = next((node for node in tree.body if name in _names(node)), None)
    if node is None:
        known = [one for node in tree.body for one in _names(node) if not one.startswith("_")]
        listed = ", ".join(known[:12]) or "nothing"
        raise _refused(label, f"{file} has no `{name}`.", f"It has: {listed}.")
    if isinstance(node, ast.AsyncFunctionDef):
        raise _refused(
            label, "it is asynchronous.", "Name a function that runs it: asyncio.run(…)."
        )
    if isinstance(node, ast.FunctionDef) and (wanted := _required(node.args)):
        raise _refused(
            label,
            f"it cannot be called without arguments: {', '.join(wanted)}.",
            "Name one that can, or leave it out and write the step by hand.",
        )


def _names(node: ast.stmt) -> Iterator[str]:
    """The names that a top-level statement of a module binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (one.asname or one.name.partition(".")[0] for one in node.names)
    elif isinstance(node, ast.Assign):
        yield from (one.id for one in node.targets if isinstance(one, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def _required(arguments: ast.arguments) -> list[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = positional[: len(positional) - len(arguments.defaults)]
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return [one.arg for one in (*needed, *(name for name, value in pairs if value is None))]


def _refused(label: str, what: str, fix: str) -> InputError:
    return InputError(what=what, where=f"init {label}", fix=fix)
