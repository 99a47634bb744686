"""LitServe: a server in Python, as a second of the same interface."""

from __future__ import annotations

import http.client
import os
import signal
from pathlib import Path

from corebound.planning.servers import MODEL, PORT_FILE
from corebound.serving.server import LOOPBACK, ServedModel, ServerWorker, free_ports

ASK_S = 2.0


class LitServe:
    """One LitServe; its workers are known by what they report as they are ready."""

    distribution = "litserve"
    path = "/predict"
    content_type = "application/json"

    def __init__(self, model: ServedModel, *, workers: int, reports: Path) -> None:
        """Choose its port.

        Args:
            model: What it serves.
            workers: How many processes answer.
            reports: Where each worker leaves a file named by its process.
        """
        self._model = model
        self.body = model.json
        self._workers = workers
        self._reports = reports
        (self.port,) = free_ports(1)

    def write(self, folder: Path) -> dict[str, str]:
        """Link the model and write down the port."""
        (folder / MODEL).symlink_to(self._model.file)
        (folder / PORT_FILE).write_text(str(self.port), encoding="ascii")
        return {}

    def workers(self) -> tuple[ServerWorker, ...]:
        """Those that have reported and live; ready once the server says that all are."""
        pids = sorted(int(file.stem) for file in self._reports.glob("[0-9]*.json"))
        alive = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
        ready = bool(alive) and self._is_healthy()
        return tuple(ServerWorker(id=str(pid), pid=pid, ready=ready) for pid in alive)

    def stop(self, pids: tuple[int, ...]) -> None:
        """Interrupt the first process, which ends the others; told to terminate, it would not."""
        os.kill(pids[0], signal.SIGINT)

    def _is_healthy(self) -> bool:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=ASK_S)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
