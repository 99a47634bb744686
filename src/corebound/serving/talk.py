"""The runner's side of the talk with a load generator."""

from __future__ import annotations

import os

from corebound.model import traffic, wire
from corebound.model.traffic import Answered, GeneratorOrder, Warmed


class GeneratorTalk:
    """Two pipes to one generator, and all that it has said."""

    def __init__(self) -> None:
        order_read, self._orders = os.pipe()
        self._reply, reply_write = os.pipe()
        os.set_blocking(self._reply, False)
        self.theirs = (order_read, reply_write)
        self._rest = b""
        self.pid = 0
        self.open = True
        self.warmed: Warmed | None = None
        self.answered: Answered | None = None
        self.failure: wire.Failure | None = None

    def fileno(self) -> int:
        """Readable when the generator has spoken."""
        return self._reply

    def started(self, pid: int, order: GeneratorOrder) -> None:
        """The generator runs: give it its order, and keep our own ends only."""
        self.pid = pid
        for descriptor in self.theirs:
            os.close(descriptor)
        self.theirs = (-1, -1)
        self._order(traffic.encode(order))

    def go(self) -> None:
        """Tell it to measure."""
        self._order(wire.GO)

    def hear(self) -> None:
        """Take in what it has said so far."""
        while self.open:
            try:
                data = os.read(self._reply, 1 << 16)
            except BlockingIOError:
                return
            self.open = bool(data)
            self._rest += data
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._take(line)

    def died(self, code: int) -> None:
        """It ended without a word: say how."""
        self.failure = self.failure or wire.Failure(
            during="requests", what=f"the load generator ended with {code}.", mend=None
        )

    def close(self) -> None:
        """Close every pipe that is still open; the generator ends once its orders do."""
        for descriptor in (self._orders, self._reply, *self.theirs):
            if descriptor >= 0:
                os.close(descriptor)
        self._orders = self._reply = -1
        self.theirs = (-1, -1)
        self.open = False

    def _order(self, line: bytes) -> None:
        try:
            os.write(self._orders, line)
        except BrokenPipeError:
            self.hear()  # it has ended: whatever it said last is the reason

    def _take(self, line: bytes) -> None:
        try:
            message = traffic.decode_message(line)
        except wire.WireError as error:
            self.failure = wire.Failure(
                during="requests", what=f"the load generator said {error}", mend=None
            )
            return
        if isinstance(message, Warmed):
            self.warmed = message
        elif isinstance(message, Answered):
            self.answered = message
        else:
            self.failure = message
