"""The servers that come with corebound, declared as one of the user's own is.

Besides, their workers report themselves, and the right answer is known.
"""

import json
import math
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from pathlib import Path

from corebound.machine.procfs import process_stat
from corebound.machine.topology import CpuId
from corebound.planning import servers
from corebound.planning.cpu_selection import server_binds_workers
from corebound.planning.models import Placement
from corebound.scenario.cell import Cell
from corebound.scenario.server_workload import Requests, ServerProcess, ServerWorkload, StopSignal
from corebound.serving.asking import LOOPBACK, QUERY_TIMEOUT_S, ask
from corebound.serving.generator.streaming import streamed_text
from corebound.serving.own_server import DeclaredServer
from corebound.serving.processes import Processes, ServerWorker, await_workers
from corebound.serving.served_model import ServedModel, ServerError
from corebound.worker import protocol

MODEL_NAME = "classifier"
COMPLETIONS = "/v1/completions"
ARCHIVE = f"{MODEL_NAME}.mar"

# The queue in which requests wait for a worker. A shorter one would answer a burst with 503.
QUEUE_LENGTH = 10_000
# Longer than any launch, so that only the runner's deadline applies.
RESPONSE_S = 3600


# Thread pools of different sizes add in a different order.
TOLERANCE = 1e-3


class BuiltInServer(DeclaredServer):
    """A server of a model that corebound made.

    A worker reports once it has loaded its model. With several workers uvicorn opens its port long
    before, so the port says nothing.
    """

    answer_fix = "Timings of a wrong answer are meaningless. See the launch's log."

    def __init__(
        self,
        distribution: str,
        model: ServedModel,
        *,
        body: Path,
        reports: Path,
        workers: int,
        file: Path | None = None,
        path: str = "/predict",
        ready: str | None = None,
        stop: StopSignal = "SIGTERM",
    ) -> None:
        """Choose its port.

        Args:
            model: The model to serve, with the right answer.
            body: The file with the body of every request.
            reports: The folder in which each worker writes a file named after its process id.
            workers: The number of its workers.
            file: The file of the model that it reads; None: the one in TorchScript.
            path: The path of requests.
            ready: The address that tells that it is ready; None: it accepts connections.
            stop: The signal that ends it and its workers.
        """
        url = f"http://{LOOPBACK}:{{port}}{path}"
        process = ServerProcess(command=(distribution,), ready=ready, stop=stop)
        declared = ServerWorkload(server=process, requests=Requests(url=url, body=body.name))
        super().__init__(declared, folder=str(body.parent), workers=workers, path=None)
        self.distribution = distribution
        self._model, self._file, self._reports = model, file or model.file, reports

    def write(self, folder: Path) -> dict[str, str]:
        """Tell it its port and its model: in variables, which uvicorn reads, and in files."""
        (folder / servers.MODEL_FILE).symlink_to(self._file)
        (folder / servers.PORT_FILE).write_text(str(self.port), encoding="ascii")
        told = {"UVICORN_PORT": str(self.port), protocol.SERVED_MODEL: str(self._file)}
        return super().write(folder) | told

    def await_ready(self, processes: Processes, root: int | None) -> None:
        """Wait until all its workers are ready, and until it accepts connections."""
        if root is None:
            raise ValueError("corebound starts a built-in server")
        await_workers(self.workers, processes, root=root, count=self._count)
        self.await_answer(processes, root)

    def workers(self) -> tuple[ServerWorker, ...]:
        """The live processes that have reported, by process id."""
        pids = sorted(int(file.stem) for file in self._reports.glob("[0-9]*.json"))
        return tuple(
            ServerWorker(id=str(pid), pid=pid, ready=True)
            for pid in pids
            if process_stat(pid) is not None
        )

    def difference(self, content: bytes, *, streams: bool) -> str | None:
        """How an answer differs from the right one; None if it does not."""
        expected = json.loads(self._model.expected.read_bytes())
        if streamed_text(content) == expected if streams else _agrees(content, expected):
            return None
        right = repr(expected) if streams else f"class {expected[0][0]}"
        return f"wrong answer, {right} was expected"


def _agrees(answer: bytes, expected: list[list[float]]) -> bool:
    """Whether the most likely class and its probability are as expected."""
    try:
        (index, probability), *_ = json.loads(answer)
        likely = math.isclose(probability, expected[0][1], rel_tol=TOLERANCE)
    except (ValueError, TypeError):
        return False
    return bool(index == expected[0][0] and likely)


class TorchServe(BuiltInServer):
    """One TorchServe instance, with a port per interface and its own folders."""

    ports = 5

    def __init__(
        self,
        model: ServedModel,
        *,
        workers: int,
        pinned: Sequence[Sequence[CpuId]] | None,
        python: Path,
        reports: Path,
    ) -> None:
        """Choose its ports.

        Args:
            workers: The number of worker processes.
            pinned: The CPUs that its CPU launcher binds each worker to, the same
                number for each; None: do not use the CPU launcher.
            reports: As for other servers.
        """
        super().__init__(
            *("torchserve", model),
            body=model.jpeg,
            reports=reports,
            workers=workers,
            path=f"/predictions/{MODEL_NAME}",
        )
        self.pinned = pinned
        self._bin = python.parent
        self._management, self._metrics, *self._grpc = self.more_ports

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
        (folder / servers.MODEL_STORE).mkdir()
        (folder / servers.MODEL_STORE / ARCHIVE).symlink_to(self._model.archive)
        for name in ("logs", "temporary"):
            (folder / name).mkdir()
        settings = self._settings(folder / servers.MODEL_STORE)
        lines = (f"{name}={value}\n" for name, value in settings.items())
        (folder / servers.CONFIGURATION).write_text("".join(lines), encoding="utf-8")
        # TorchServe finds its CPU launcher with the `python` on PATH (pytorch/serve#3049).
        path = os.pathsep.join((str(self._bin), os.environ.get("PATH", os.defpath)))
        home = os.environ.get("JAVA_HOME")
        inherited = {"JAVA_HOME": home} if home else {}
        return (
            super().write(folder)
            | inherited
            | {
                "PATH": path,
                "VIRTUAL_ENV": str(self._bin.parent),
                "TEMP": str(folder / "temporary"),
                "TMPDIR": str(folder / "temporary"),
                "LOG_LOCATION": str(folder / "logs"),
                "METRICS_LOCATION": str(folder / "logs"),
            }
        )

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
            **servers.torchserve_workers(self._count, self.pinned),
            "default_response_timeout": str(RESPONSE_S),
            "job_queue_size": str(QUEUE_LENGTH),
            "load_models": ARCHIVE,
            "model_store": str(store),
        }

    def workers(self) -> tuple[ServerWorker, ...]:
        """The workers by the management API; the ping API is healthy before they are ready."""
        try:
            path = f"/models/{MODEL_NAME}"
            reply = ask(LOOPBACK, self._management, path, within_s=QUERY_TIMEOUT_S)
            document = json.loads(reply.content) if reply.status == HTTPStatus.OK else None
        except (OSError, ValueError):
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
            if (stat := process_stat(pid)) is not None and stat.name == "java":
                os.kill(pid, signal.SIGTERM)


def server_of(
    cell: Cell, placement: Placement, python: Path, model: ServedModel | None, reports: Path
) -> BuiltInServer:
    """The server of a cell.

    Args:
        cell: The cell; its framework is a server.
        reports: The folder in which each worker writes a file named after its process id.
    """
    if model is None:
        raise ValueError("a built-in server has a model")
    parameters = dict(cell.parameters)
    is_text, is_onnx = "context" in parameters, parameters.get("runtime") == "onnxruntime"
    slots = placement.slots
    make = partial(BuiltInServer, cell.framework, model, reports=reports, workers=len(slots))
    match cell.framework:
        case "llama-server":
            return make(body=model.text_request, file=model.gguf, path=COMPLETIONS)
        case "fastapi" if is_text:
            return make(body=model.text_request, path=COMPLETIONS)
        case "fastapi":
            return make(body=model.jpeg, file=model.onnx if is_onnx else None)
        case "litserve":
            # On SIGTERM it would not end its other processes.
            health = f"http://{LOOPBACK}:{{port}}/health"
            return make(body=model.json, ready=health, stop="SIGINT")
    pinned = tuple(slot.cpus for slot in slots) if server_binds_workers(cell) else None
    return TorchServe(model, workers=len(slots), pinned=pinned, python=python, reports=reports)


def find_java(variables: Mapping[str, str] = os.environ) -> str | None:
    """The path of `java`: from JAVA_HOME, which TorchServe uses, if it is set; else from PATH.

    None if there is no executable.
    """
    java_home = variables.get("JAVA_HOME")
    program = str(Path(java_home) / "bin" / "java") if java_home else "java"
    return shutil.which(program, path=variables.get("PATH", os.defpath))
