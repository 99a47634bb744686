"""Write the first files of a suite, from a script: `corebound init`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from corebound.workflow.init import InitResult, Integration, init_repository


def init(
    function: str | None = None,
    *,
    folder: str | PathLike[str] = ".",
    name: str | None = None,
    install: str | None = None,
    systemd: bool = False,
    integrations: Sequence[Integration] | None = None,
    dry_run: bool = False,
) -> InitResult:
    """Write the files that a repository needs for measurements, as `corebound init` does.

    Existing files stay as they are.

    Args:
        function: The function to measure, as `package.module:function`; None writes a step
            to fill in.
        folder: The repository.
        name: The scenario's name; None uses the function's name.
        install: The command that installs corebound in CI; None uses the place that this one came
            from.
        systemd: Whether to add systemd units and a line for cron.
        integrations: Some of `github`, `gitlab` and `makefile`; None uses what the repository's
            files and remotes say, or all of them.
        dry_run: Whether to write nothing.

    Returns:
        What became of each file; `document` is what `corebound init --json` prints.

    Raises:
        InputError: There is no such folder, it cannot be written, or the function is missing or
            needs arguments.
    """
    return init_repository(
        Path(folder),
        function,
        name=name,
        install=install,
        systemd=systemd,
        integrations=integrations,
        dry_run=dry_run,
    )
