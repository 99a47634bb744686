"""What `corebound --help` says, in a terminal of 80 columns."""

from __future__ import annotations

from typer.testing import CliRunner

from corebound.cli.app import COMMANDS, app


def test_every_command_is_told_whole_on_one_line() -> None:
    # The runner's terminal is 80 columns wide, whatever ours is.
    done = CliRunner().invoke(app, ["--help"])

    told = done.output.split("Commands:")[1].splitlines()[1:]
    assert [line.split()[0] for line in told if line] == list(COMMANDS)
    assert [line for line in told if line.endswith("...")] == []
