"""The recipes of the page on metrics, with the real tools: shorter, and otherwise as they are."""

import importlib.util
import json
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from support import needs
from support.commands import corebound
from support.environments import in_environment
from support.paths import ROOT

HEAD = "schema: 1\nname: recipe\ntitle: A recipe\nquestion: How fast?\n"
MEASURE = (
    "measure: {iterations: 2, launches: {min: 2, max: 2}, relaunch_disturbed: 0,"
    " alternate: never}\n"
)
PAGE = (ROOT / "docs" / "how-to" / "own-metric.md").read_text()


def value_of(folder: Path, tool: str, *changes: tuple[str, str], more: str = "") -> float:
    """The value of a tool's recipe, with texts replaced; each launch of it has to be right."""
    (recipe,) = re.findall(rf"```yaml\n(# {tool}\b.*?)```", PAGE, re.DOTALL)
    for old, new in changes:
        assert old in recipe
        recipe = recipe.replace(old, new)
    (folder / "recipe.yaml").write_text(HEAD + recipe + more + MEASURE)
    completed = corebound(folder, "run", "recipe.yaml", "--json")
    assert completed.code == 0, completed.err
    document = json.loads(completed.out)
    assert document["launches"] == {"ok": 2}
    return float(document["cells"][0]["metrics"][0]["value"])


class Server(ThreadingHTTPServer):
    """A server that the load generators ask, on a port that is free."""

    request_queue_size = 64


class Answer(BaseHTTPRequestHandler):
    """Its answers."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        # ab speaks HTTP/1.0, in which an answer has to say so.
        self.send_header("Connection", "keep-alive")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("tool", "changes"),
    [
        pytest.param("wrk", [("5s", "1s"), ('"16"', '"4"')], marks=needs.wrk),
        pytest.param("ab", [("20000", "200")], marks=needs.ab),
    ],
)
def test_a_load_generator_is_compared_by_its_rate(
    tmp_path: Path, tool: str, changes: list[tuple[str, str]]
) -> None:
    with Server(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        value = value_of(tmp_path, tool, ("8080", str(server.server_port)), *changes)
        server.shutdown()

    assert value > 1


@needs.sysbench
def test_sysbench_gets_its_threads(tmp_path: Path) -> None:
    assert value_of(tmp_path, "sysbench", more="threads: 1\n") > 1


@needs.redis
def test_redis_is_started_asked_and_ended(tmp_path: Path) -> None:
    assert value_of(tmp_path, "Redis", ("200000", "2000"), more="threads: 1\n") > 1


@needs.sqlite
def test_sqlite_is_compared_by_the_time_of_its_statements(tmp_path: Path) -> None:
    (tmp_path / "bench.sql").write_text(
        ".timer on\nCREATE TABLE t AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL"
        " SELECT x + 1 FROM n LIMIT 300000) SELECT x FROM n;\nSELECT sum(x * x) FROM t;\n"
    )

    assert value_of(tmp_path, "SQLite") > 0


STREAM = r"""
#include <omp.h>
#include <stdio.h>
#define N 4000000
static double a[N], b[N], c[N];
int main(void) {
    double best = 1e9;
    for (int run = 0; run < 5; run++) {
        double began = omp_get_wtime();
        #pragma omp parallel for
        for (int i = 0; i < N; i++) a[i] = b[i] + 3.0 * c[i];
        double took = omp_get_wtime() - began;
        if (took < best) best = took;
    }
    printf("threads %d\nTriad: %12.1f\n", omp_get_max_threads(), 24e-6 * N / best);
    return 0;
}
"""


@needs.compiler
def test_a_program_with_openmp_follows_the_threads(tmp_path: Path) -> None:
    (tmp_path / "stream.c").write_text(STREAM)
    build = ["gcc", "-O2", "-fopenmp", "-o", "stream", "stream.c"]
    subprocess.run(build, cwd=tmp_path, check=True)

    assert value_of(tmp_path, "STREAM", more="matrix: {threads: [1]}\n") > 1
    threads = (
        "triad, unit: MB/s, better: higher, regex: 'Triad:",
        "n, better: lower, regex: 'threads",
    )
    assert value_of(tmp_path, "STREAM", threads, more="threads: 1\n") == pytest.approx(1)


def test_pytest_benchmark_is_compared_by_the_median_of_a_benchmark(tmp_path: Path) -> None:
    if importlib.util.find_spec("pytest_benchmark") is None:
        needs.missing("not installed: pip install pytest-benchmark")
    (tmp_path / "test_sort.py").write_text(
        "def test_sort(benchmark):\n    benchmark(sorted, range(1000, 0, -1))\n"
    )
    environment = f"environment: {{python: {sys.executable}}}\n"

    assert 0 < value_of(tmp_path, "pytest-benchmark", more=environment) < 1


ADD = """
import numpy as np
import openvino as ov
from openvino import opset13 as ops
given = ops.parameter([1, 64], np.float32)
product = ops.matmul(given, ops.constant(np.ones((64, 64), np.float32)), False, False)
ov.save_model(ov.Model([product], [given]), PATH)
"""


@pytest.mark.frameworks
def test_the_benchmark_of_openvino_is_found_in_its_environment(tmp_path: Path) -> None:
    path = str(tmp_path / "model.xml")
    in_environment("openvino", f"PATH = {path!r}\n{ADD}", cwd=tmp_path / "made")

    assert value_of(tmp_path, "OpenVINO", ('"5"', '"1"'), more="threads: 1\n") > 1
