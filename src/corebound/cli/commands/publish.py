"""`corebound publish`: publish the site to a folder or a branch."""

from pathlib import Path
from typing import Annotated

from corebound.cli.options import Output
from corebound.cli.output.console import Console
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
) -> Output:
    """Publish the site to a folder or a git branch.

    Publishing is atomic: readers see the previous site or the new one.

    Examples:
        corebound publish --to /var/www/speed
        corebound publish --branch gh-pages --push origin
    """
    published = workflow.publish(
        site, to=to, branch=branch, repository=repository, push=push, squash=squash
    )
    if published.commit is None:
        message = str(published.to)
    else:
        message = f"{published.branch} {published.commit[:10]}"
        if not published.is_new:
            message += " (unchanged)"
        elif published.pushed_to is not None:
            message += f", pushed to {published.pushed_to}"
    return Output(published, lambda: Console().print_line(f"Published: {message}"))
