"""`corebound environment` without a terminal: create, list and remove environments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from corebound.errors import InputError
from corebound.launch import environments
from corebound.launch.environments import EnvironmentStatus
from corebound.launch.existing_environments import is_existing
from corebound.scenario.cell import is_project
from corebound.workflow import scenarios


class MadeEnvironment(Struct, frozen=True, kw_only=True):
    """An environment that is ready.

    Attributes:
        name: Its name.
        packages: Its packages, such as `numpy==2.4.1`.
        python: The path of its interpreter.
    """

    name: str
    packages: tuple[str, ...]
    python: str


class RemovedEnvironment(Struct, frozen=True, kw_only=True):
    """An environment that was deleted: how many folders, and their size."""

    name: str
    folders: int
    size_bytes: int


def make_environments(
    names: Sequence[str],
    files: Sequence[Path],
    notify: Callable[[str, str], None],
    *,
    wheelhouse: Path | None = None,
) -> Iterator[MadeEnvironment]:
    """Create environments from their requirements files, one after the other.

    Args:
        names: Names of `environments/NAME.txt`.
        files: Scenario files, or folders of them, whose environments to create, too.
        notify: Called with the name of an environment and a message about its progress.
        wheelhouse: A folder of wheels to install from; None uses the package index.

    Yields:
        Each environment as soon as it is ready; one that exists already is reused.

    Raises:
        InputError: Nothing is named, or there is no requirements file of a name.
        LaunchError: The packages could not be installed.
    """
    if not names and not files:
        raise InputError(
            what="no environment named.",
            where="corebound environment make",
            fix="Name some that `corebound environment list` shows, or pass --for scenarios/.",
        )
    folders = {name: Path.cwd() for name in names} | _needed(files)
    for name, folder in folders.items():
        made = environments.make(name, folder, partial(notify, name), wheelhouse=wheelhouse)
        yield MadeEnvironment(name=name, packages=made.lock.packages, python=str(made.python))


def _needed(files: Sequence[Path]) -> dict[str, Path]:
    """The environments of the scenarios that corebound makes, each with its scenario's folder."""
    if not files:
        return {}
    loaded = scenarios.load_scenarios(files, ())
    names = dict.fromkeys(cell.environment for cell in scenarios.all_cells(loaded))
    return {
        name: scenarios.folder_of(name, loaded)
        for name in names
        if name != environments.HOST and not is_project(name) and not is_existing(name)
    }


def list_environments() -> tuple[EnvironmentStatus, ...]:
    """The state of each environment of the current folder, and of others that were created."""
    environments.sweep()
    return environments.statuses(Path.cwd())


def remove_environments(names: Sequence[str]) -> tuple[RemovedEnvironment, ...]:
    """Delete environments, including older ones of the same names.

    Raises:
        InputError: An environment has not been created.
        HostError: A process is using one; it is kept.
    """
    removed = []
    for name in dict.fromkeys(names):
        folders, size_bytes = environments.remove(name)
        removed.append(RemovedEnvironment(name=name, folders=folders, size_bytes=size_bytes))
    return tuple(removed)
