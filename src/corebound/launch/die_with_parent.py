"""A command that ends with its starter: `python -m corebound.launch.die_with_parent PID WORD...`.

Only a process itself can ask for that, and only before it is the command; so this asks, and
then becomes the command. PARENT is the number of the process that started it.
"""

from __future__ import annotations

import os
import signal
import sys

from corebound.launch.supervisor import end_with_parent

# As a shell has it of a program that is not there, and of one that SIGTERM ended.
_NOT_FOUND = 127
_TERMINATED = 128 + signal.SIGTERM


def words(command: tuple[str, ...]) -> tuple[str, ...]:
    """What starts a command that is to end with this process."""
    # -P, for the folder that it is started in may hold a module of any name.
    return (
        sys.executable,
        "-P",
        "-m",
        "corebound.launch.die_with_parent",
        str(os.getpid()),
        *command,
    )


def main() -> int:
    """Become the command; the exit code if that cannot be."""
    parent, *command = sys.argv[1:]
    end_with_parent(signal.SIGTERM)
    if os.getppid() != int(parent):  # it was gone before we could ask
        return _TERMINATED
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
    return _NOT_FOUND


if __name__ == "__main__":
    sys.exit(main())
