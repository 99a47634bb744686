"""Create, list and remove environments, from a script or a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

from corebound.api.arguments import path_or_none
from corebound.api.reporter import CallReporter
from corebound.launch.environments import EnvironmentStatus
from corebound.workflow import environments as workflow
from corebound.workflow.environments import MadeEnvironment, RemovedEnvironment


def environments() -> tuple[EnvironmentStatus, ...]:
    """The state of each environment of the current folder, and of others that were created."""
    return workflow.list_environments()


def make_environments(
    *names: str,
    files: Sequence[str | PathLike[str]] = (),
    wheelhouse: str | PathLike[str] | None = None,
    notify: Callable[[str], object] | None = None,
) -> tuple[MadeEnvironment, ...]:
    """Create environments from their requirements files, as `corebound environment make` does.

    An environment that exists already, from a file with the same content, is reused.

    Args:
        names: Names of `environments/NAME.txt`.
        files: Scenario files, or folders of them, whose environments to create, too.
        wheelhouse: A folder of wheels to install from; None uses the package index.
        notify: Called with each line about the progress; `print` shows them.

    Raises:
        InputError: Nothing is named, or there is no requirements file of a name.
        LaunchError: The packages could not be installed.
    """
    reporter = CallReporter(notify)
    return tuple(
        workflow.make_environments(
            names,
            [Path(file) for file in files],
            lambda name, message: reporter.notify(f"{name}: {message}"),
            wheelhouse=path_or_none(wheelhouse),
        )
    )


def remove_environments(*names: str) -> tuple[RemovedEnvironment, ...]:
    """Delete environments, including older ones of the same names.

    Raises:
        InputError: An environment has not been created.
        HostError: A process is using one; it is kept.
    """
    return workflow.remove_environments(names)
