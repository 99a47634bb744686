"""The servers that can be measured: how each is configured, queried and stopped."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from corebound.machine.procfs import process_stat
from corebound.machine.topology import CpuId
from corebound.planning.cpu_selection import server_binds_workers
from corebound.planning.models import Placement
from corebound.planning.servers import (
    CONFIGURATION,
    MODEL_FILE,
    MODEL_STORE,
    PORT_FILE,
    torchserve_workers,
)
from corebound.scenario.cell import Cell
from corebound.serving.asking import ask
from corebound.serving.served_model import ServedModel, ServerError
from corebound.worker import protocol

LOOPBACK = "127.0.0.1"


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
    with ExitStack() as sockets:
        ports = []
        for _ in range(count):
            server_socket = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            server_socket.bind((LOOPBACK, 0))
            ports.append(int(server_socket.getsockname()[1]))
    return tuple(ports)


MODEL_NAME = "classifier"
ARCHIVE = f"{MODEL_NAME}.mar"

# The queue in which requests wait for a worker. A shorter one would answer a burst with 503.
QUEUE_LENGTH = 10_000
# Longer than any launch, so that only the runner's deadline applies.
RESPONSE_S = 3600
QUERY_TIMEOUT_S = 2.0


class TorchServe:
    """One TorchServe instance, with a port per interface and its own folders."""

    distribution = "torchserve"
    path = f"/predictions/{MODEL_NAME}"
    content_type = "image/jpeg"

    def __init__(
        self,
        model: ServedModel,
        *,
        workers: int,
        pinned: Sequence[Sequence[CpuId]] | None,
        python: Path,
    ) -> None:
        """Choose its ports.

        Args:
            model: The model to serve.
            workers: The number of worker processes.
            pinned: The CPUs that its CPU launcher binds each worker to, the same
                number for each; None: do not use the CPU launcher.
            python: The interpreter of the server's environment.
        """
        self._model = model
        self.body = model.jpeg
        self._workers = workers
        self.pinned = pinned
        self._bin = python.parent
        self.port, self._management, self._metrics, *self._grpc = free_ports(5)

    def write(self, folder: Path) -> dict[str, str]:
        """Write the configuration and link the archive.

        Raises:
            ServerError: Java is not installed.
        """
        if find_java() is None:
            raise ServerError(
                what="TorchServe needs Java, which is not installed on this host.",
                where="torchserve",
                fix="Install it: `apt-get install default-jre-headless`.",
            )
        (folder / MODEL_STORE).mkdir()
        (folder / MODEL_STORE / ARCHIVE).symlink_to(self._model.archive)
        for name in ("logs", "temporary"):
            (folder / name).mkdir()
        settings = self._settings(folder / MODEL_STORE)
        lines = (f"{name}={value}\n" for name, value in settings.items())
        (folder / CONFIGURATION).write_text("".join(lines), encoding="utf-8")
        # TorchServe finds its CPU launcher with the `python` on PATH (pytorch/serve#3049).
        path = os.pathsep.join((str(self._bin), os.environ.get("PATH", os.defpath)))
        home = os.environ.get("JAVA_HOME")
        inherited = {"JAVA_HOME": home} if home else {}
        return inherited | {
            "PATH": path,
            "VIRTUAL_ENV": str(self._bin.parent),
            "TEMP": str(folder / "temporary"),
            "TMPDIR": str(folder / "temporary"),
            "LOG_LOCATION": str(folder / "logs"),
            "METRICS_LOCATION": str(folder / "logs"),
        }

    def _settings(self, store: Path) -> dict[str, str]:
        return {
            "inference_address": f"http://{LOOPBACK}:{self.port}",
            "management_address": f"http://{LOOPBACK}:{self._management}",
            "metrics_address": f"http://{LOOPBACK}:{self._metrics}",
            "grpc_inference_port": str(self._grpc[0]),
            "grpc_management_port": str(self._grpc[1]),
            # Only this host can reach the loopback interface.
            "disable_token_authorization": "true",
            "disable_system_metrics": "true",
            **torchserve_workers(self._workers, self.pinned),
            "default_response_timeout": str(RESPONSE_S),
            "job_queue_size": str(QUEUE_LENGTH),
            "load_models": ARCHIVE,
            "model_store": str(store),
        }

    def workers(self) -> tuple[ServerWorker, ...]:
        """The workers by the management API; the ping API is healthy before they are ready."""
        try:
            document = _query(self._management, f"/models/{MODEL_NAME}")
        except (OSError, http.client.HTTPException, ValueError):
            return ()
        if not isinstance(document, list) or not document:
            return ()
        return tuple(
            ServerWorker(
                id=str(worker["id"]),
                # -1 and 0 mean that there is no process.
                pid=worker["pid"] if worker.get("pid", 0) > 0 else None,
                ready=worker.get("status") == "READY",
            )
            for worker in sorted(
                document[0].get("workers", []), key=lambda worker: str(worker["id"])
            )
        )

    def stop(self, pids: tuple[int, ...]) -> None:
        """Terminate the Java process, which ends its workers; its wrapper would not end them."""
        for pid in pids:
            if _is_java(pid):
                os.kill(pid, signal.SIGTERM)


def _query(port: int, path: str) -> object:
    reply = ask(LOOPBACK, port, path, within_s=QUERY_TIMEOUT_S)
    return json.loads(reply.content) if reply.status == http.client.OK else None


def _is_java(pid: int) -> bool:
    stat = process_stat(pid)
    return stat is not None and stat.name == "java"


class _ReportingServer:
    """A server whose workers are known from the reports that they write when ready."""

    path = "/v1/completions"
    content_type = "application/json"

    def __init__(self, model: Path, body: Path, *, reports: Path) -> None:
        """Choose its port.

        Args:
            model: The file of the model to serve.
            body: The file with the body of every request.
            reports: The folder in which each worker writes a file named after its process id.
        """
        self._model = model
        self.body = body
        self._reports = reports
        (self.port,) = free_ports(1)

    def write(self, folder: Path) -> dict[str, str]:
        """Link the model and write the port to a file."""
        (folder / MODEL_FILE).symlink_to(self._model)
        (folder / PORT_FILE).write_text(str(self.port), encoding="ascii")
        return {}

    def workers(self) -> tuple[ServerWorker, ...]:
        """The live processes that have reported, by process id."""
        pids = sorted(int(file.stem) for file in self._reports.glob("[0-9]*.json"))
        return tuple(
            ServerWorker(id=str(pid), pid=pid, ready=True)
            for pid in pids
            if process_stat(pid) is not None
        )

    def stop(self, pids: tuple[int, ...]) -> None:
        """Terminate the root process, which ends its workers."""
        os.kill(pids[0], signal.SIGTERM)


class LitServe(_ReportingServer):
    """One LitServe instance."""

    distribution = "litserve"
    path = "/predict"

    def workers(self) -> tuple[ServerWorker, ...]:
        """The live workers that have reported; ready once the server's health check passes."""
        alive = super().workers()
        return alive if alive and self._is_healthy() else ()

    def stop(self, pids: tuple[int, ...]) -> None:
        """Interrupt the root process, which ends the others; it would not do so on SIGTERM."""
        os.kill(pids[0], signal.SIGINT)

    def _is_healthy(self) -> bool:
        try:
            reply = ask(LOOPBACK, self.port, "/health", within_s=QUERY_TIMEOUT_S)
        except (OSError, http.client.HTTPException):
            return False
        return reply.status == http.client.OK


class TextFastApi(_ReportingServer):
    """A language model in a FastAPI application on uvicorn, which reads its weights from no file.

    A worker reports once it has loaded its model, right before uvicorn lets it accept
    connections. With several workers uvicorn opens the port long before, so the port says nothing.
    """

    distribution = "fastapi"

    def write(self, folder: Path) -> dict[str, str]:
        """The port, which uvicorn reads from its environment, and the model; writes no files."""
        del folder
        return {"UVICORN_PORT": str(self.port), protocol.SERVED_MODEL: str(self._model)}


class FastApi(TextFastApi):
    """A classifier in a FastAPI application on uvicorn."""

    path = "/predict"
    content_type = "image/jpeg"


class LlamaServer(_ReportingServer):
    """llama.cpp's server: one process, which reports once it has written a first text."""

    distribution = "llama-server"


def server_of(
    cell: Cell, placement: Placement, python: Path, model: ServedModel | None, reports: Path
) -> Server:
    """The server of a cell.

    Args:
        cell: The cell; its framework is a server.
        placement: Its placement.
        python: The interpreter of its environment.
        model: The model to serve.
        reports: The folder in which each worker writes a file named after its process id.
    """
    if model is None:
        raise ValueError("a built-in server has a model")
    parameters = dict(cell.parameters)
    match cell.framework:
        case "llama-server":
            return LlamaServer(model.gguf, model.text_request, reports=reports)
        case "fastapi" if "context" in parameters:
            return TextFastApi(model.file, model.text_request, reports=reports)
        case "fastapi":
            is_onnx = parameters.get("runtime") == "onnxruntime"
            return FastApi(model.onnx if is_onnx else model.file, model.jpeg, reports=reports)
        case "litserve":
            return LitServe(model.file, model.json, reports=reports)
    slots = placement.slots
    pinned = tuple(slot.cpus for slot in slots) if server_binds_workers(cell) else None
    return TorchServe(model, workers=len(slots), pinned=pinned, python=python)


def find_java(variables: Mapping[str, str] = os.environ) -> str | None:
    """The path of `java`: from JAVA_HOME, which TorchServe uses, if it is set; else from PATH.

    None if there is no executable.
    """
    java_home = variables.get("JAVA_HOME")
    program = str(Path(java_home) / "bin" / "java") if java_home else "java"
    return shutil.which(program, path=variables.get("PATH", os.defpath))
