"""Write the first files of a suite, from a script: `corebound init` and `corebound example`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from corebound.workflow import examples as workflow
from corebound.workflow.examples import Example, WrittenExamples
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


def examples() -> tuple[Example, ...]:
    """The scenarios that come with corebound, by name."""
    return workflow.examples()


def write_examples(*names: str, into: str | PathLike[str] = ".") -> WrittenExamples:
    """Write scenarios that come with corebound as files, with the modules that they measure.

    Existing files stay as they are.

    Args:
        names: The names that `examples` lists.
        into: The folder to write them to.

    Raises:
        InputError: No scenario has a name, or the folder cannot be written.
    """
    return workflow.write_examples(names, Path(into))
