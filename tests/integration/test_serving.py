"""Real servers under real requests: binding, failures and cleanup."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import corebound
from corebound.machine import discovery
from corebound.machine.procfs import processes_below
from corebound.planning.models import Command
from corebound.records import jsonl
from corebound.serving import own_server
from corebound.serving.asking import free_ports
from corebound.serving.served_model import ServedModel
from corebound.serving.session import ServingSpec
from support import needs
from support.commands import until
from support.environments import python_of
from support.servers import Serve, below_with, command_line_of, while_measuring

pytestmark = [pytest.mark.frameworks, needs.java]


def processes_of_servers() -> list[str]:
    """Servers and their workers among what this test has started."""
    command_of = [
        command_line_of(pid).decode(errors="replace") for pid in processes_below(os.getpid())
    ]
    return [line for line in command_of if "torchserve" in line or "served_classifier" in line]


@needs.two_cpus
def test_pinned_workers_have_separate_cores_and_one_thread(served: Serve) -> None:
    outcome = served(binding="launcher")

    assert (outcome.status, outcome.reason, outcome.leftover_processes) == ("ok", None, ())
    allowed = [
        {mask for thread in worker.threads for mask in thread.allowed} for worker in outcome.workers
    ]
    cores = len(discovery.live_topology().allowed) // 2
    assert [len(one) for one in allowed] == [1, 1]
    assert allowed[0] != allowed[1]
    assert [worker.threads_used for worker in outcome.workers] == [cores, cores]
    assert processes_of_servers() == []


def test_a_killed_worker_shows_as_errors_and_no_request_is_lost(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill() -> None:
        os.kill(below_with(b"model_service_worker")[0], signal.SIGKILL)

    killed = while_measuring(monkeypatch, kill, after_s=0.5)
    # Eight seconds of requests: on a busy host a worker takes some of them to start again.
    parameters = {"traffic": "constant", "rate": 20.0}
    outcome = served(threads=1, iterations=160, parameters=parameters)

    assert killed.is_set()
    assert outcome.served is not None
    answered = outcome.served.answered
    assert answered.ok + sum(answered.errors.values()) == 160
    assert answered.errors or outcome.served.restarts
    if outcome.status == "failed":
        assert "requests failed" in (outcome.reason or "")


@pytest.mark.quick
@needs.two_cpus
def test_onnx_runtime_behind_fastapi_answers_with_the_requested_threads(served: Serve) -> None:
    parameters = {"concurrency": 2, "runtime": "onnxruntime"}

    outcome = served(server="fastapi", workers=2, threads=2, parameters=parameters)

    # Before that, an answer has been compared with PyTorch's.
    assert (outcome.status, outcome.reason) == ("ok", None), outcome.log
    assert [worker.threads_used for worker in outcome.workers] == [2, 2]
    assert all("onnxruntime" in worker.versions for worker in outcome.workers)
    assert all("torch" not in worker.versions for worker in outcome.workers)


def test_a_wrong_answer_fails_before_timing(served: Serve) -> None:
    def misled(order: ServingSpec) -> ServingSpec:
        made = order.model

        def model(execute: Any) -> ServedModel:
            right = made(execute)
            assert right is not None
            folder = order.scratch / "model"
            shutil.copytree(right.folder, folder)
            found = json.loads(right.expected.read_bytes())
            found[0][0] += 1
            (folder / right.expected.name).write_text(json.dumps(found))
            return ServedModel(folder=folder)

        return replace(order, model=model)

    outcome = served(server="litserve", workers=1, change=misled)

    assert outcome.status == "failed"
    assert "wrong answer" in (outcome.reason or ""), outcome.log
    assert outcome.served is None


def broken_model(order: ServingSpec) -> ServingSpec:
    made = order.model

    def model(execute: Any) -> ServedModel:
        right = made(execute)
        assert right is not None
        folder = order.scratch / "model"
        shutil.copytree(right.folder, folder)
        (folder / right.file.name).write_bytes(b"no TorchScript")
        (folder / right.archive.name).unlink(missing_ok=True)
        command_of = (
            *(str(python_of("torchserve").with_name("torch-model-archiver")), "--version", "1.0"),
            *("--model-name", "classifier", "--serialized-file", str(folder / right.file.name)),
            *("--handler", str(Path(corebound.__file__).parent / "worker" / "workloads" / HANDLER)),
            *("--export-path", str(folder)),
        )
        assert execute(command_of, folder) == 0
        return ServedModel(folder=folder)

    return replace(order, model=model)


HANDLER = "served_classifier_torchserve.py"


def test_a_model_that_cannot_be_loaded_fails_early_with_the_reason(served: Serve) -> None:
    outcome = served(workers=1, change=broken_model, timeout_s=300.0)

    assert outcome.status == "failed"
    assert "in `startup`" in (outcome.reason or "")
    assert outcome.log
    assert processes_of_servers() == []


def test_a_port_that_is_taken_fails_with_the_reason(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        taken = held.getsockname()[1]
        monkeypatch.setattr(own_server, "free_ports", lambda count: (taken, *free_ports(count - 1)))

        outcome = served(workers=1, timeout_s=300.0)

    assert outcome.status == "failed"
    assert "in `startup`" in (outcome.reason or "")
    assert f"listens on port {taken}" in (outcome.reason or "")


def test_a_missing_server_program_fails(served: Serve) -> None:
    def gone(order: ServingSpec) -> ServingSpec:
        return replace(order, command=Command(argv=("/no/such/torchserve",), env=()))

    outcome = served(change=gone)

    assert outcome.status == "failed"
    assert "could not be started" in (outcome.reason or "")


def test_a_slow_startup_times_out(served: Serve) -> None:
    outcome = served(timeout_s=2.0)

    assert outcome.status == "timed-out"
    assert "`startup`" in (outcome.reason or "") or "`model`" in (outcome.reason or "")
    assert processes_of_servers() == []


def test_nothing_survives_a_runner_that_is_killed(tmp_path: Path) -> None:
    python_of("torchserve")
    (tmp_path / "s.yaml").write_text(
        "schema: 1\nname: s\ntitle: S\nquestion: Q?\nworkload: image-serving\n"
        "environment: torchserve\nworkers: 2\nthreads: 1\n"
        "parameters: {model: resnet18, image: 64, concurrency: 4}\n"
        "measure: {relaunch_disturbed: 0, warmup: {iterations: 8}, iterations: 100000,"
        " launches: {min: 2, max: 2}}\n"
    )
    runner = subprocess.Popen(
        (sys.executable, "-m", "corebound", "run", "s.yaml", "--unlocked"),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        # The generator comes once every worker is ready.
        until(lambda: below_with(b"corebound.serving.generator"), 120)
        started = set(processes_below(runner.pid))
    finally:
        runner.kill()
        runner.wait()

    # The supervisor, the server with its workers, the generator.
    assert len(started) >= 5
    until(lambda: not any(map(command_line_of, started)))
    # A run appears with its first launch.
    assert list(jsonl.files(tmp_path / "reports" / "records")) == []
