"""`corebound publish`: publish the site to a folder or a branch."""

from pathlib import Path
from typing import Annotated

from rich.text import Text

from corebound.cli.options import Json
from corebound.cli.output.console import Console
from corebound.cli.output.json import print_json
from corebound.workflow import publish as workflow
from corebound.workflow.options import Branch, Option, Push, Squash, To
from corebound.workflow.publish import DEFAULT_SITE


def publish(
    *,
    site: Annotated[Path, Option("Site that `corebound report` has written.")] = DEFAULT_SITE,
    to: To = None,
    branch: Branch = None,
    repository: Annotated[Path, Option("Repository of the branch.", name="--repo")] = Path(),
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
    published = workflow.publish(
        site, to=to, branch=branch, repository=repository, push=push, squash=squash
    )
    if as_json:
        print_json(published.document)
        return
    if published.commit is None:
        message = str(published.to)
    else:
        message = f"{published.branch} {published.commit[:10]}"
        if not published.is_new:
            message += " (unchanged)"
        elif published.pushed_to is not None:
            message += f", pushed to {published.pushed_to}"
    Console(soft_wrap=True).print(Text(f"Published: {message}"))
