"""`corebound init`: write the files that a repository needs for measurements and nightly runs."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from corebound.cli.options import Json
from corebound.cli.output.terminal import Console
from corebound.errors import InputError
from corebound.workflow.init import detect, files
from corebound.workflow.init.detect import look
from corebound.workflow.init.files import Fate, InitRequest

# Lines that the user has to add to an existing file, and their purpose.
_LINES = {
    "Makefile": ("include corebound.mk", "for `make speed`, `speed-compare` and `speed-nightly`"),
    ".gitignore": ("/reports/\n    /.asv/", "for what is made by measuring"),
    ".gitlab-ci.yml": (
        "include: [{local: .gitlab/corebound.yml}]",
        "for GitLab's continuous integration",
    ),
}


def init(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|MODULE:FUNCTION", help="The repository, or what of this one is timed."
        ),
    ] = Path(),
    *,
    function: Annotated[
        str | None,
        typer.Option("--function", metavar="MODULE:FUNCTION", help="What of it is to be timed."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The scenario's; else the function's.")
    ] = None,
    install: Annotated[
        str, typer.Option("--install", help="What installs corebound in continuous integration.")
    ] = "python -m pip install corebound",
    systemd: Annotated[
        bool, typer.Option("--systemd", help="Also a service, a timer, and a line for cron.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write what a repository needs to be measured.

    That is a scenario, asv.conf.json, workflows and Makefile lines; nothing is overwritten.
    """
    folder, function = _meant(folder, function)
    repository = look(folder)
    wanted = InitRequest(
        repository=repository,
        target=None if function is None else detect.found(function, repository.folder),
        name=name,
        install=install,
        systemd=systemd,
        program=Path(sys.executable).parent / "corebound",
    )
    fates = files.put(files.texts(wanted), repository.folder)
    if as_json:
        typer.echo(json.dumps({"folder": str(repository.folder), "files": fates}, indent=1))
        return
    console = Console(soft_wrap=True)
    for line in _lines(wanted, fates, folder):
        console.print(Text(line))


def _meant(folder: Path, function: str | None) -> tuple[Path, str | None]:
    """Split the arguments into repository and function; `init shop.prices:total` uses this folder.

    Raises:
        InputError: The folder does not exist.
    """
    if folder.is_dir():
        return folder, function
    if function is None and ":" in str(folder):
        return Path(), str(folder)
    raise InputError(
        what="there is no such folder.",
        where=str(folder),
        fix="Name your repository's, or a function of it: package.module:function.",
    )


def _lines(wanted: InitRequest, fates: dict[str, Fate], folder: Path) -> list[str]:
    width = max(map(len, fates.values()))
    lines = [f"{fate:{width}}  {name}" for name, fate in fates.items()]
    for name, (what, why) in _LINES.items():
        if fates.get(name) == "left alone":
            lines += ["", f"{name} is yours and was left alone. Add to it, {why}:", f"    {what}"]
    if wanted.systemd:
        units = "nightly/corebound-nightly"
        lines += [
            "",
            "For every night: copy the units, or take the line in nightly/crontab:",
            f"    sudo cp {units}.service {units}.timer /etc/systemd/system/",
            "    sudo systemctl enable --now corebound-nightly.timer",
        ]
    if not wanted.repository.is_built:
        lines += [
            "",
            f"Its commits cannot be built: it lacks {' and '.join(wanted.repository.lacks)}.",
            "Until then the scenario measures the files as they are, and jobs that compare",
            f"commits fail. Then delete scenarios/{wanted.scenario}.yaml, and run this again.",
        ]
    lines += ["", "Now:"]
    if folder.resolve() != Path.cwd():
        lines.append(f"    cd {shlex.quote(str(folder))}")
    lines += [f"    corebound run scenarios/{wanted.scenario}.yaml", "    corebound report --open"]
    return lines
