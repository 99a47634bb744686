"""Two pipes to a process that is launched, and lines over them both ways."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator


class Pipes:
    """Our ends of two pipes; the process finds its own as `wire.REQUEST_FD` and `wire.REPLY_FD`.

    Who talks over them derives from this, and says what a line means.

    Attributes:
        theirs: Its ends, until it has been started.
        open: Whether it may still say something.
    """

    def __init__(self) -> None:
        """Open both."""
        request_read, self._orders = os.pipe()
        self._reply, reply_write = os.pipe()
        os.set_blocking(self._reply, False)
        self.theirs = (request_read, reply_write)
        self.open = True
        self._rest = b""

    def fileno(self) -> int:
        """Readable when the process has spoken."""
        return self._reply

    def keep_ours(self) -> None:
        """It has its ends: close them here."""
        theirs, self.theirs = self.theirs, (-1, -1)
        _close(theirs)

    def send(self, line: bytes) -> bool:
        """Tell it something; False if it has ended and will not read it."""
        try:
            os.write(self._orders, line)
        except BrokenPipeError:
            return False
        return True

    def lines(self) -> Iterator[bytes]:
        """Every whole line that it has said since it was last asked, without waiting."""
        while self.open:
            try:
                data = os.read(self._reply, 1 << 16)
            except BlockingIOError:
                return
            self.open = bool(data)
            self._rest += data
            *lines, self._rest = self._rest.split(b"\n")
            yield from lines

    def part(self) -> None:
        """Tell it that nothing more is wanted."""
        orders, self._orders = self._orders, -1
        _close((orders,))

    def close(self) -> None:
        """Give back every descriptor; the process hears that it is to leave."""
        self.part()
        self.keep_ours()
        reply, self._reply, self.open = self._reply, -1, False
        _close((reply,))


def _close(descriptors: Iterable[int]) -> None:
    """Close what is open; forgotten before, so that none is closed twice after an interrupt."""
    for descriptor in descriptors:
        if descriptor >= 0:
            os.close(descriptor)
