"""`corebound publish`: publish the site to a folder or a branch."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from corebound.cli.options import Json
from corebound.cli.output.terminal import Console
from corebound.errors import InputError
from corebound.workflow.publish import branch as branches
from corebound.workflow.publish import folder

To = Annotated[Path | None, typer.Option("--to", help="A folder that a web server shows.")]
Branch = Annotated[
    str | None, typer.Option("--branch", help="A branch of a repository, such as gh-pages.")
]
Push = Annotated[
    str | None, typer.Option("--push", metavar="REMOTE", help="Push the branch there.")
]
Squash = Annotated[bool, typer.Option("--squash", help="Keep none of the branch's commits before.")]


def publish(
    *,
    site: Annotated[
        Path, typer.Option("--site", help="What `corebound report` has written.")
    ] = Path("reports/site"),
    to: To = None,
    branch: Branch = None,
    repository: Annotated[
        Path, typer.Option("--repo", help="The repository of that branch.")
    ] = Path(),
    push: Push = None,
    squash: Squash = False,
    as_json: Json = False,
) -> None:
    """Put the site where readers see it, in one step.

    A folder or a branch; a reader never sees half of it.
    """
    if (to is None) == (branch is None):
        raise InputError(
            what="it is not clear where to.",
            where="corebound publish",
            fix="Pass one of --to FOLDER and --branch NAME.",
        )
    if to is not None and (push is not None or squash):
        raise InputError(
            what="--push and --squash are for a branch.",
            where="corebound publish",
            fix="Pass --branch as well, or leave them out.",
        )
    found = folder.opened(site, datetime.now(UTC).isoformat(timespec="seconds"))
    if to is not None:
        folder.publish(found, to)
        told: dict[str, str | bool] = {"to": str(to.absolute())}
        said = f"{to.absolute()}"
    else:
        where = branches.Branch(
            repository=repository, name=branch or "", remote=push, squash=squash
        )
        done = branches.publish(found, where)
        told = {"branch": where.name, "commit": done.sha, "new": done.new}
        said = f"{where.name} {done.sha[:10]}" + ("" if done.new else ": it was there already")
        said += f", pushed to {push}" if push and done.new else ""
    if as_json:
        typer.echo(json.dumps(told, indent=1))
    else:
        Console(soft_wrap=True).print(Text(f"Published: {said}"))
