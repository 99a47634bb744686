"""`corebound environment` without a terminal: list, create and remove environments."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

from msgspec import Struct

from corebound.errors import InputError
from corebound.launch import environments as launch
from corebound.launch.environments import EnvironmentStatus
from corebound.launch.existing_environments import is_existing
from corebound.scenario.cell import is_project
from corebound.workflow import scenarios
from corebound.workflow.projects import about


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


def environments() -> tuple[EnvironmentStatus, ...]:
    """The state of each environment of the current folder, and of others that were created."""
    launch.sweep()
    return launch.statuses(Path.cwd())


def make_environments(
    *names: str,
    files: Sequence[str | PathLike[str]] = (),
    wheelhouse: str | PathLike[str] | None = None,
    ready: Callable[[MadeEnvironment], object] | None = None,
    notify: Callable[[str], object] | None = None,
) -> tuple[MadeEnvironment, ...]:
    """Create environments from their requirements files, as `corebound environment make` does.

    An environment that exists already, from a file with the same content, is reused.

    Args:
        names: Names of `environments/NAME.txt`.
        files: Scenario files, or folders of them, whose environments to create, too.
        wheelhouse: A folder of wheels to install from; None uses the package index.
        ready: Called with each environment as soon as it is ready.
        notify: Called with each line about the progress; `print` shows them.

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
    folders = {name: Path.cwd() for name in names} | _needed([Path(file) for file in files])
    wheels = None if wheelhouse is None else Path(wheelhouse)
    all_made = []
    for name, folder in folders.items():
        made = launch.make(name, folder, about(name, notify), wheelhouse=wheels)
        environment = MadeEnvironment(
            name=name, packages=made.lock.packages, python=str(made.python)
        )
        all_made.append(environment)
        if ready is not None:
            ready(environment)
    return tuple(all_made)


def _needed(files: Sequence[Path]) -> dict[str, Path]:
    """The environments of the scenarios that corebound makes, each with its scenario's folder."""
    if not files:
        return {}
    loaded = scenarios.load_scenarios(files, ())
    names = dict.fromkeys(cell.environment for cell in scenarios.all_cells(loaded))
    return {
        name: scenarios.folder_of(name, loaded)
        for name in names
        if name != launch.HOST and not is_project(name) and not is_existing(name)
    }


def remove_environments(*names: str) -> tuple[RemovedEnvironment, ...]:
    """Delete environments, including older ones of the same names.

    Raises:
        InputError: An environment has not been created.
        HostError: A process is using one; it is kept.
    """
    removed = []
    for name in dict.fromkeys(names):
        folders, size_bytes = launch.remove(name)
        removed.append(RemovedEnvironment(name=name, folders=folders, size_bytes=size_bytes))
    return tuple(removed)
