"""Defines the interface of a measurable server: its address, files, workers and shutdown."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from corebound.errors import CoreboundError

LOOPBACK = "127.0.0.1"


class ServerError(CoreboundError):
    """A server does not work; the reason is in the launch's record."""

    exit_code = 4


class ServerWorker(Struct, frozen=True, kw_only=True):
    """One of a server's worker processes, which answer requests.

    Attributes:
        id: The server's own name for the worker; a restarted worker keeps it.
        pid: The worker's process id, or None while it has no process.
        ready: Whether the server would send it a request.
    """

    id: str
    pid: int | None
    ready: bool


class ServedModel(Struct, frozen=True, kw_only=True):
    """The files of a served model: the network, a request body and the expected answer."""

    folder: Path

    @property
    def file(self) -> Path:
        """The network in TorchScript."""
        return self.folder / "model.pt"

    @property
    def archive(self) -> Path:
        """The network packed for TorchServe."""
        return self.folder / "classifier.mar"

    @property
    def jpeg(self) -> Path:
        """The body of every request: a JPEG image."""
        return self.folder / "image.jpg"

    @property
    def json(self) -> Path:
        """The request body for a server that accepts only JSON: the JPEG image in base64."""
        return self.folder / "image.json"

    @property
    def expected(self) -> Path:
        """The right answer, as JSON: [class, probability] pairs."""
        return self.folder / "expected.json"


class Server(Protocol):
    """The server of one launch; call `write` before starting its process.

    Attributes:
        distribution: The name of its Python package.
        port: The port for requests, on the loopback interface.
        path: The URL path of requests.
        body: The file with the body of every request.
        content_type: The content type of the body.
    """

    distribution: str
    port: int
    path: str
    body: Path
    content_type: str

    def write(self, folder: Path) -> dict[str, str]:
        """Write the files that its command reads to the folder it starts in.

        Returns:
            The environment variables that it needs in addition to those of the cell.

        Raises:
            ServerError: something that the server needs is missing.
        """

    def workers(self) -> tuple[ServerWorker, ...]:
        """The workers that the server reports, by id; empty while it does not respond."""

    def stop(self, pids: tuple[int, ...]) -> None:
        """Ask the server to end. `pids` are all its processes, the root process first."""


def free_ports(count: int) -> tuple[int, ...]:
    """Different ports of the loopback interface that are free at this moment."""
    with ExitStack() as held:
        ports = []
        for _ in range(count):
            one = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            one.bind((LOOPBACK, 0))
            ports.append(int(one.getsockname()[1]))
    return tuple(ports)
