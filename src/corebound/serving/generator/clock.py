"""An event loop that wakes to the microsecond, and the clock it goes by."""

from __future__ import annotations

import asyncio
import select
import selectors
import time

# asyncio's loop goes by the same clock, so times may be compared.
clock_ns = time.monotonic_ns


class MicrosecondSelector(selectors.EpollSelector):
    """Waits as long as it is told to.

    epoll_wait(2) counts milliseconds and Python rounds up, so that each request of a
    schedule would go half a millisecond late. select(2) counts microseconds; it waits
    here for the one descriptor that stands for all of them.
    """

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Like `EpollSelector.select`."""
        if timeout is not None and timeout > 0:
            select.select([self.fileno()], [], [], timeout)
            timeout = 0
        return super().select(timeout)


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop over such a selector."""
    return asyncio.SelectorEventLoop(MicrosecondSelector())
