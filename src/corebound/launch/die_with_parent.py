"""Runs a command that ends with its parent.

Usage: `python -m corebound.launch.die_with_parent PID WORD...`.

A process can request this only for itself, and must do so before it executes the command. This
module makes the request and then executes the command. PID is the process id of the parent.
"""

import os
import signal
import sys

from corebound.launch.supervisor import end_with_parent

# The exit codes of a shell for a missing program, and for one that SIGTERM ended.
_PROGRAM_NOT_FOUND = 127
_TERMINATED = 128 + signal.SIGTERM


def wrap(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command line that runs a command which ends when this process ends."""
    # -P, because the working directory may hold a module of any name.
    return (
        sys.executable,
        "-P",
        "-m",
        "corebound.launch.die_with_parent",
        str(os.getpid()),
        *command,
    )


def main() -> int:
    """Replace this process with the command; returns an exit code if that fails."""
    parent, *command = sys.argv[1:]
    end_with_parent(signal.SIGTERM)
    if os.getppid() != int(parent):  # the parent ended before the request
        return _TERMINATED
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
    return _PROGRAM_NOT_FOUND


if __name__ == "__main__":
    sys.exit(main())
