"""Load generators and servers under load, started as processes without a run around them."""

import contextlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

import corebound
from corebound.launch.launch import LaunchResult
from corebound.launch.supervisor_client import Supervision
from corebound.machine.procfs import processes_below
from corebound.runner.launcher import serving_spec
from corebound.scenario import traffic
from corebound.scenario.traffic import Answered, GeneratorOrder, Message
from corebound.serving.session import GeneratorConnection, ServingSpec, serve
from corebound.worker import protocol
from support.environments import plan_cell


class GeneratorClient:
    """The runner's end of a generator, without the runner."""

    def __init__(self, orders: BinaryIO, answers: BinaryIO, log: Path) -> None:
        self._orders = orders
        self._answers = answers
        self._log = log

    def order(self, order: GeneratorOrder) -> Message:
        return self._say(traffic.encode(order))

    def go(self) -> Answered:
        answered = self._say(protocol.GO)
        assert isinstance(answered, Answered), answered
        return answered

    def part(self) -> None:
        self._orders.close()

    def _say(self, line: bytes) -> Message:
        self._orders.write(line)
        self._orders.flush()
        answer = self._answers.readline()
        assert answer, self._log.read_text()
        return traffic.decode_message(answer)


class GeneratorProcess:
    """A generator's process under its supervisor."""

    def __init__(self, supervision: Supervision, pid: int, generator: GeneratorClient) -> None:
        self._supervision = supervision
        self._pid = pid
        self.generator = generator

    def exit_code(self) -> int:
        deadline_s = time.monotonic() + 20
        while (code := self._supervision.exit_code(self._pid)) is None:
            assert time.monotonic() < deadline_s, "the generator stays"
            time.sleep(0.01)
        return code


@contextmanager
def start_generator(tmp_path: Path, **env: str) -> Iterator[GeneratorProcess]:
    scratch = tmp_path / "generator"
    (scratch / "library").mkdir(parents=True)
    (scratch / "library" / "corebound").symlink_to(Path(corebound.__file__).parent)
    with ExitStack() as stack:
        log = stack.enter_context((tmp_path / "log").open("wb"))
        order_read, order_write = os.pipe()
        answer_read, answer_write = os.pipe()
        orders = stack.enter_context(os.fdopen(order_write, "wb"))
        answers = stack.enter_context(os.fdopen(answer_read, "rb"))
        supervision = stack.enter_context(Supervision(scratch))
        pid = supervision.spawn(
            (sys.executable, "-m", "corebound.serving.generator"),
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(scratch / "library"), **env},
            cwd=tmp_path,
            descriptors=(log.fileno(), order_read, answer_write),
        )
        os.close(order_read)
        os.close(answer_write)
        yield GeneratorProcess(supervision, pid, GeneratorClient(orders, answers, tmp_path / "log"))


Serve = Callable[..., LaunchResult]


def a_serving_order(
    server: str,
    scratch: Path,
    *,
    workers: int = 2,
    iterations: int = 40,
    timeout_s: float = 120.0,
    parameters: Mapping[str, Any],
    workload: str = "image-serving",
    **settings: Any,
) -> ServingSpec:
    """What launches a server of a small network; a worker takes seconds to import its framework."""
    (scratch / "launch").mkdir()
    network = {"model": "resnet18", "image": 64} if workload == "image-serving" else {}
    return serving_spec(
        plan_cell(
            server,
            workload=workload,
            workers=workers,
            parameters={**network, **parameters},
            measure={"iterations": iterations, "warmup": {"iterations": 8}, "timeout_s": timeout_s},
            **settings,
        ),
        scratch / "library",
        scratch / "launch",
    )


def make_scratch() -> Path:
    """A run's folder, with the library that holds the package and nothing else.

    Its name is short, as a run's: sockets below it have 107 bytes for theirs. The supervisor that
    works there removes it.
    """
    folder = Path(tempfile.mkdtemp(prefix="corebound-"))
    (folder / "library").mkdir()
    (folder / "library" / "corebound").symlink_to(Path(corebound.__file__).parent)
    return folder


def server_launcher(scratch: Path, supervision: Supervision) -> Serve:
    """What launches one server; `change` may spoil its order, `tick` disturb it as it works."""

    def served(
        *,
        server: str = "torchserve",
        iterations: int = 40,
        change: Callable[[ServingSpec], ServingSpec] = lambda order: order,
        tick: Callable[[], None] = lambda: None,
        timeout_s: float = 120.0,
        parameters: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> LaunchResult:
        order = a_serving_order(
            server,
            scratch,
            iterations=iterations,
            timeout_s=timeout_s,
            parameters=parameters or {"concurrency": 4},
            **settings,
        )
        outcome = serve(change(order), supervision, tick)
        shutil.rmtree(scratch / "launch")
        return outcome

    return served


def while_measuring(
    patch: pytest.MonkeyPatch, act: Callable[[], None], *, after_s: float
) -> threading.Event:
    """Do something so long after a launch has begun to measure; set once it is done."""
    done = threading.Event()
    go = GeneratorConnection.go

    def go_and_act(connection: GeneratorConnection) -> None:
        def acted() -> None:
            act()
            done.set()

        go(connection)
        threading.Timer(after_s, acted).start()

    patch.setattr(GeneratorConnection, "go", go_and_act)
    return done


def below_with(word: bytes) -> list[int]:
    """Processes that this one has started, with this in their command line."""
    return [pid for pid in processes_below(os.getpid()) if word in command_line_of(pid)]


def command_line_of(pid: int) -> bytes:
    """A process's command line; empty where it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
