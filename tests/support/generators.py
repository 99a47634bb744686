"""Load generators as processes of their own, without a runner."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

import corebound
from corebound.launch.supervisor_client import Supervision
from corebound.scenario import traffic
from corebound.scenario.traffic import Answered, GeneratorOrder, Message
from corebound.worker import protocol


class Generator:
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


class Started:
    """A generator's process under its supervisor."""

    def __init__(self, supervision: Supervision, pid: int, generator: Generator) -> None:
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
def a_generator(tmp_path: Path, **env: str) -> Iterator[Started]:
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
        yield Started(supervision, pid, Generator(orders, answers, tmp_path / "log"))
