"""A process that has imported corebound and forks for each command, as `support.commands` asks.

A command of corebound spends most of its second importing. Otherwise a fork is what
`python -m corebound` would be: its own process, with the folder, environment, output and exit
code that the request gives.
"""

import gc
import importlib
import json
import os
import pkgutil
import random
import runpy
import signal
import socket
import sys
import tempfile
from pathlib import Path

# Read once, and shared by all forks; pandas comes with the tables of the Python functions.
PRELOADED = ("corebound.api.results", "corebound.report.site", "pandas")


def preload() -> None:
    """Import what commands import."""
    commands = importlib.import_module("corebound.cli.commands")
    for module in pkgutil.iter_modules(commands.__path__, f"{commands.__name__}."):
        importlib.import_module(module.name)
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()


def next_command(channel: socket.socket) -> list[str]:
    """Serve requests; returns the arguments of one in the process that shall carry it out.

    A request is a JSON object and three descriptors: of its standard output, its standard error
    and a pipe, which gets the process's number and, when it has ended, its exit code.
    """
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if not message:
            sys.exit()
        out, err, told = descriptors
        if os.fork() == 0:
            channel.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if child := os.fork():
                os.write(told, f"{child}\n".encode())
                _, status = os.waitpid(child, 0)
                os.write(told, f"{os.waitstatus_to_exitcode(status)}\n".encode())
                os._exit(0)
            request = json.loads(message)
            os.dup2(out, 1)
            os.dup2(err, 2)
            for descriptor in descriptors:
                os.close(descriptor)
            os.chdir(request["folder"])
            os.environ.clear()
            os.environ.update(request["environment"])
            return list(request["arguments"])
        for descriptor in descriptors:
            os.close(descriptor)


def main() -> None:
    """Serve the socket whose descriptor is the argument."""
    preload()
    # Nobody waits for the processes that wait for commands.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    arguments = next_command(socket.socket(fileno=int(sys.argv[1])))
    # As a fresh process has them.
    tempfile.tempdir = None
    random.seed()
    sys.path.insert(0, str(Path.cwd()))
    sys.argv = ["corebound", *arguments]
    runpy.run_module("corebound", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
