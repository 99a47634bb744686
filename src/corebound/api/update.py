"""Fetch the latest commits of the project under test, from a script."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from corebound.api.measure import CallReporter
from corebound.workflow.projects import CONFIG, UpdatedProject, update_project


def update(
    *, config: str | PathLike[str] = CONFIG, notify: Callable[[str], object] | None = None
) -> UpdatedProject:
    """Fetch and fast-forward the project under test, as `corebound update` does.

    Args:
        config: The asv.conf.json of the project.
        notify: Called with each line about the progress; `print` shows them.

    Raises:
        InputError: The project cannot be identified.
        LaunchError: git refuses, for example after histories diverged.
    """
    return update_project(Path(config), CallReporter(notify).notify)
