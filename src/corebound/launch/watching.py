"""Everything that looks at one launch from outside: its threads, and the host."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from corebound.launch.apart import apart
from corebound.launch.counting import counters
from corebound.launch.host_watch import HostWatch, Threads
from corebound.launch.perf import Offer, Perf
from corebound.launch.processes import below
from corebound.launch.supervise import Supervision
from corebound.launch.telemetry import Watch
from corebound.model.plan import Placement
from corebound.model.record import ThreadEvidence
from corebound.model.telemetry import Counters, HostOverTime


class Watching:
    """The watches of one launch, taken together.

    Attributes:
        watches: One for each process that was named, in that order.
        threads: What was seen of their threads; empty until closed.
        host: What was seen of the host; None until closed, or if nothing was timed.
        counters: What the launch's processes were counted to do; likewise.
    """

    def __init__(
        self,
        pids: Sequence[int],
        placement: Placement,
        supervision: Supervision,
        *,
        scratch: Path,
        counting: Offer,
    ) -> None:
        """Begin to watch.

        Args:
            pids: The workers, each the root of its processes.
            placement: What CPUs they were given.
            supervision: What everything of the launch is below.
            scratch: The launch's folder.
            counting: What counters to have; without events none are attached.
        """
        self.watches = [Watch(pid) for pid in pids]
        self.threads: tuple[tuple[ThreadEvidence, ...], ...] = ()
        self.host: HostOverTime | None = None
        self.counters: Counters | None = None
        self._counting = counting
        self._perf = Perf(counting.events, supervision, scratch) if counting.events else None
        self._cpus = tuple(sorted(set(chain.from_iterable(s.cpus for s in placement.slots))))
        self._supervisor = supervision.pid
        self._host: HostWatch | None = None
        self._moved = contextlib.ExitStack()

    def begin(self) -> None:
        """See everything once, before the workers are told to go."""
        for watch in self.watches:
            watch.look(search=True)
        if self._perf is not None:
            self._perf.start({pid for watch in self.watches for pid in watch.processes})

    def mark(self) -> None:
        """Count from here, and leave the launch's CPUs to it where there are others."""
        away = self._moved.enter_context(apart(self._cpus))
        self._host = HostWatch(
            cpus=self._cpus,
            processes=lambda: (self._supervisor, *below(self._supervisor)),
            ours=() if away else (os.getpid(),),
        )
        for watch in self.watches:
            watch.mark()
        self._host.mark(self._threads())
        if self._perf is not None:
            self._perf.count()

    def look(self) -> None:
        """See every thread, and the host if it is time for that."""
        for watch in self.watches:
            watch.look()
        if self._host is not None and self._host.due:
            self._host.look(self._threads())

    def end(self) -> None:
        """See everything a last time, as the workers are through."""
        if self._perf is not None:
            self._perf.stop()
        for watch in self.watches:
            watch.look()
        if self._host is not None:
            self._host.look(self._threads())
        for watch in self.watches:
            watch.look(search=True)

    def close(self) -> None:
        """No more looks."""
        self._moved.close()
        self.threads = tuple(watch.close() for watch in self.watches)
        if self._host is not None:
            self.host = self._host.close()
            self._host = None
            seen = chain.from_iterable(self.threads)
            self.counters = counters(self._counting, self._perf, seen, self.host)
        elif self._perf is not None:
            self._perf.close()

    @property
    def pause_s(self) -> float:
        """How long to leave the launch alone; a second where there is nothing to watch."""
        return max((watch.pause_s for watch in self.watches), default=1.0)

    @property
    def looks(self) -> int:
        """How often threads were looked at while they were timed, and the host."""
        return sum(watch.looks for watch in self.watches) + (self.host.looks if self.host else 0)

    @property
    def look_ns(self) -> int:
        """CPU time of that."""
        own_ns = sum(watch.look_ns for watch in self.watches)
        return own_ns + (self.host.look_ns if self.host else 0)

    def _threads(self) -> Threads | None:
        each = [watch.threads for watch in self.watches]
        known = [one for one in each if one is not None]
        if len(known) < len(each):
            return None
        return Threads(
            ran_ns=sum(one.ran_ns for one in known),
            waited_ns=sum(one.waited_ns for one in known),
        )
