"""The first answer of a server, before anything is timed."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from corebound.serving.processes import require_correct_answer
from corebound.serving.served_model import ServedModel, ServerError
from corebound.serving.servers import FastApi

ANSWER = [[7, 0.9]]


class Classifier(BaseHTTPRequestHandler):
    """Answers every request with the same class."""

    def do_POST(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(ANSWER).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def a_model(folder: Path) -> ServedModel:
    model = ServedModel(folder=folder)
    model.expected.write_text(json.dumps(ANSWER))
    model.jpeg.write_bytes(b"an image")
    return model


def test_a_server_that_listens_after_its_worker_has_reported_is_asked_again(
    tmp_path: Path,
) -> None:
    model = a_model(tmp_path)
    server = FastApi(model.file, model.jpeg, reports=tmp_path)
    listening: list[HTTPServer] = []

    def wait(_: float) -> None:
        listening.append(HTTPServer(("127.0.0.1", server.port), Classifier))
        threading.Thread(target=listening[0].handle_request, daemon=True).start()

    require_correct_answer(server, model, wait)

    assert len(listening) == 1
    listening[0].server_close()


def test_a_server_that_never_listens_is_an_error(tmp_path: Path) -> None:
    model = a_model(tmp_path)
    waits: list[float] = []

    with pytest.raises(ServerError, match="refused"):
        require_correct_answer(
            FastApi(model.file, model.jpeg, reports=tmp_path), model, waits.append
        )

    assert 1 < sum(waits) < 10
