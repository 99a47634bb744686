"""The runner's side of the connection to a load generator."""

from __future__ import annotations

from corebound.launch.worker_connection import Pipes
from corebound.scenario import traffic
from corebound.scenario.traffic import Answered, GeneratorOrder, Warmed
from corebound.worker import protocol


class GeneratorTalk(Pipes):
    """The connection to one load generator, and everything received over it."""

    def __init__(self) -> None:
        """Open the pipes."""
        super().__init__()
        self.pid = 0
        self.warmed: Warmed | None = None
        self.answered: Answered | None = None
        self.failure: protocol.Failure | None = None

    def started(self, pid: int, order: GeneratorOrder) -> None:
        """Note that the generator has started, close its pipe ends here and send the order."""
        self.pid = pid
        self.keep_ours()
        self._order(traffic.encode(order))

    def go(self) -> None:
        """Tell the generator to start measuring."""
        self._order(protocol.GO)

    def hear(self) -> None:
        """Process the messages received so far."""
        for line in self.lines():
            self._take(line)

    def died(self, code: int) -> None:
        """Record a failure for a generator that ended without reporting one."""
        self.failure = self.failure or protocol.Failure(
            during="requests", what=f"the load generator ended with {code}.", mend=None
        )

    def _order(self, line: bytes) -> None:
        if not self.send(line):
            self.hear()  # it has ended: its last message holds the reason

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
