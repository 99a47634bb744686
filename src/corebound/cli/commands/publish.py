"""`corebound publish`: publish the site to a folder or a branch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from corebound import clock
from corebound.cli.options import Json
from corebound.cli.output.console import Console
from corebound.cli.output.json import print_json
from corebound.errors import InputError
from corebound.workflow import publish as publishing

To = Annotated[Path | None, typer.Option("--to", help="Folder that a web server serves.")]
Branch = Annotated[
    str | None, typer.Option("--branch", help="Branch of a repository, such as gh-pages.")
]
Push = Annotated[
    str | None, typer.Option("--push", metavar="REMOTE", help="Push the branch to this remote.")
]
Squash = Annotated[
    bool, typer.Option("--squash", help="Replace the branch's earlier commits with this one.")
]


def publish(
    *,
    site: Annotated[
        Path, typer.Option("--site", help="Site that `corebound report` has written.")
    ] = Path("reports/site"),
    to: To = None,
    branch: Branch = None,
    repository: Annotated[Path, typer.Option("--repo", help="Repository of the branch.")] = Path(),
    push: Push = None,
    squash: Squash = False,
    as_json: Json = False,
) -> None:
    """Publish the site to a folder or a git branch.

    Publishing is atomic: readers see the previous site or the new one.

    Examples:
        corebound publish --to /var/www/speed
        corebound publish --branch gh-pages --push origin
    """
    if (to is None) == (branch is None):
        raise InputError(
            what="there must be exactly one place to publish to.",
            where="corebound publish",
            fix="Pass either --to FOLDER or --branch NAME.",
        )
    if to is not None and (push is not None or squash):
        raise InputError(
            what="--push and --squash require --branch.",
            where="corebound publish",
            fix="Pass --branch as well, or omit them.",
        )
    finished = publishing.open_site(site, clock.utc_now().isoformat(timespec="seconds"))
    document: dict[str, Any]
    if to is not None:
        publishing.publish_to_folder(finished, to)
        document = {"to": str(to.absolute())}
        message = str(to.absolute())
    else:
        target = publishing.Branch(
            repository=repository, name=branch or "", remote=push, squash=squash
        )
        published = publishing.publish_to_branch(finished, target)
        document = {"branch": target.name, "commit": published.sha, "new": published.new}
        message = f"{target.name} {published.sha[:10]}"
        if not published.new:
            message += " (unchanged)"
        elif push:
            message += f", pushed to {push}"
    if as_json:
        print_json(document)
    else:
        Console(soft_wrap=True).print(Text(f"Published: {message}"))
