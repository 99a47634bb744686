"""The first answer of a built-in server, before anything is timed."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from corebound.serving.served_model import ServedModel, ServerError
from corebound.serving.servers import BuiltInServer
from support.build import a_traffic

ANSWER = [[7, 0.9]]


class Classifier(BaseHTTPRequestHandler):
    """Answers every request with the same class."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BuiltInServer]:
    model = ServedModel(folder=tmp_path)
    model.jpeg.write_bytes(b"an image")
    (tmp_path / "work").mkdir()
    declared = BuiltInServer("fastapi", model, body=model.jpeg, reports=tmp_path, workers=1)
    declared.write(tmp_path / "work")
    with HTTPServer(("127.0.0.1", declared.port), Classifier) as listening:
        threading.Thread(target=listening.handle_request, daemon=True).start()
        yield declared


def test_a_probability_may_differ_a_little(server: BuiltInServer, tmp_path: Path) -> None:
    ServedModel(folder=tmp_path).expected.write_text(json.dumps([[7, 0.9001], [1, 0.1]]))

    server.require_right_answer(a_traffic(), left_s=10.0)


@pytest.mark.parametrize("expected", [[[8, 0.9]], [[7, 0.8]]])
def test_another_class_or_probability_is_wrong(
    server: BuiltInServer, tmp_path: Path, expected: list[list[float]]
) -> None:
    ServedModel(folder=tmp_path).expected.write_text(json.dumps(expected))

    with pytest.raises(ServerError, match=f"class {expected[0][0]} was expected"):
        server.require_right_answer(a_traffic(), left_s=10.0)
