"""What a server has to offer to be measured: a command, an address, workers, an end."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from corebound.errors import CoreboundError

LOOPBACK = "127.0.0.1"


class ServerError(CoreboundError):
    """A server cannot do its work; the launch's record says why."""

    exit_code = 4


class ServerWorker(Struct, frozen=True, kw_only=True):
    """One of the processes that a server answers with.

    Attributes:
        id: The server's own name for it; a worker that is restarted keeps it.
        pid: Its process, or None while there is none.
        ready: Whether the server would hand it a request.
    """

    id: str
    pid: int | None
    ready: bool


class ServedModel(Struct, frozen=True, kw_only=True):
    """What is served, as files: the model, a request, and the answer to it."""

    folder: Path

    @property
    def file(self) -> Path:
        """The network in TorchScript."""
        return self.folder / "model.pt"

    @property
    def archive(self) -> Path:
        """The same packed for TorchServe."""
        return self.folder / "classifier.mar"

    @property
    def jpeg(self) -> Path:
        """The body of every request, as it is."""
        return self.folder / "image.jpg"

    @property
    def json(self) -> Path:
        """The body of every request to a server that takes JSON alone: the JPEG in base64."""
        return self.folder / "image.json"

    @property
    def expected(self) -> Path:
        """The right answer, as JSON: [class, probability] pairs."""
        return self.folder / "expected.json"


class Server(Protocol):
    """A server of one launch; nothing of it is started or found before `write`.

    Attributes:
        distribution: The package it comes in.
        port: Where it takes requests, on the loopback interface.
        path: Of requests.
        body: What every request carries.
        content_type: Of the body.
    """

    distribution: str
    port: int
    path: str
    body: Path
    content_type: str

    def write(self, folder: Path) -> dict[str, str]:
        """Put what its command reads into the folder it starts in.

        Returns:
            Environment variables that it needs beside those of the cell.

        Raises:
            ServerError: something that it needs is not there.
        """

    def workers(self) -> tuple[ServerWorker, ...]:
        """Its workers as it says itself, by id; none while it does not answer."""

    def stop(self, pids: tuple[int, ...]) -> None:
        """Ask it to end, given all its processes, the one that was started first."""


def free_ports(count: int) -> tuple[int, ...]:
    """Ports of the loopback interface that nothing holds at this moment, all different."""
    with ExitStack() as held:
        ports = []
        for _ in range(count):
            one = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            one.bind((LOOPBACK, 0))
            ports.append(int(one.getsockname()[1]))
    return tuple(ports)
