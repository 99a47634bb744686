"""The runner's side of the talk with a load generator."""

from __future__ import annotations

from corebound.launch.worker_connection import Pipes
from corebound.scenario import traffic
from corebound.scenario.traffic import Answered, GeneratorOrder, Warmed
from corebound.worker import protocol


class GeneratorTalk(Pipes):
    """All that one generator has said, over two pipes to it."""

    def __init__(self) -> None:
        """Open the pipes."""
        super().__init__()
        self.pid = 0
        self.warmed: Warmed | None = None
        self.answered: Answered | None = None
        self.failure: protocol.Failure | None = None

    def started(self, pid: int, order: GeneratorOrder) -> None:
        """The generator runs: give it its order, and keep our own ends only."""
        self.pid = pid
        self.keep_ours()
        self._order(traffic.encode(order))

    def go(self) -> None:
        """Tell it to measure."""
        self._order(protocol.GO)

    def hear(self) -> None:
        """Take in what it has said so far."""
        for line in self.lines():
            self._take(line)

    def died(self, code: int) -> None:
        """It ended without a word: say how."""
        self.failure = self.failure or protocol.Failure(
            during="requests", what=f"the load generator ended with {code}.", mend=None
        )

    def _order(self, line: bytes) -> None:
        if not self.send(line):
            self.hear()  # it has ended: whatever it said last is the reason

    def _take(self, line: bytes) -> None:
        try:
            message = traffic.decode_message(line)
        except protocol.WireError as error:
            self.failure = protocol.Failure(
                during="requests", what=f"the load generator said {error}", mend=None
            )
            return
        if isinstance(message, Warmed):
            self.warmed = message
        elif isinstance(message, Answered):
            self.answered = message
        else:
            self.failure = message
