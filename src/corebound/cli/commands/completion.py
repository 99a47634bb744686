"""`corebound completion`: completion of commands and options in shells."""

from enum import Enum
from typing import Annotated

import typer
from typer._completion_classes import completion_init
from typer._completion_shared import get_completion_script

from corebound.workflow.options import Argument


class Shell(Enum):
    """The shells that have completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, Argument("The shell.")]) -> None:
    """Print the script that a shell needs for completion.

    Examples:
        eval "$(corebound completion bash)"
        corebound completion fish > ~/.config/fish/completions/corebound.fish
    """
    completion_init()
    typer.echo(
        get_completion_script(
            prog_name="corebound", complete_var="_COREBOUND_COMPLETE", shell=shell.value
        )
    )
