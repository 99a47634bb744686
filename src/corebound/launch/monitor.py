"""Everything that looks at one launch from outside: its threads, and the host."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path

from corebound.launch.host_sampler import HostSampler, Threads, together
from corebound.launch.interleaving import keep_off_cpus
from corebound.launch.perf import CounterSupport, Perf, counted
from corebound.launch.procfs import below
from corebound.launch.supervisor_client import Supervision
from corebound.launch.thread_sampler import ThreadSampler
from corebound.planning.slots import Placement
from corebound.records.launch_record import ThreadEvidence
from corebound.records.telemetry import Counters, HostOverTime


class LaunchMonitor:
    """The watches of one launch, taken together.

    Attributes:
        watches: One for each process that was named, in that order.
        threads: What was seen of their threads; empty until closed.
        host: What was seen of the host; None until closed, or if nothing was timed.
        counters: What all the launch's processes were counted to do; likewise.
        of_workers: What each worker was, by the hardware; empty where that counted nothing.
    """

    def __init__(
        self,
        pids: Sequence[int],
        placement: Placement,
        supervision: Supervision,
        *,
        scratch: Path,
        counting: CounterSupport,
        beside: Callable[[], Iterable[int]] = tuple,
        company: Iterable[int] = (),
    ) -> None:
        """Begin to watch.

        Args:
            pids: The workers, each the root of its processes.
            placement: What CPUs they were given.
            supervision: What everything of the launch is below.
            scratch: The launch's folder.
            counting: What counters to have; without events none are attached.
            beside: Lists processes of the launch that are no worker's, such as a server's
                own: they are counted too, and not looked at.
            company: Supervisors of launches that it alternates with: none is foreign to
                the others.
        """
        self.watches = [ThreadSampler(pid) for pid in pids]
        self.threads: tuple[tuple[ThreadEvidence, ...], ...] = ()
        self.host: HostOverTime | None = None
        self.counters: Counters | None = None
        self.of_workers: tuple[Counters, ...] = ()
        self._counting = counting
        self._beside = beside
        self._company = tuple(company)
        self._supervision, self._scratch = supervision, scratch
        self._perfs: list[Perf] = []
        self._cpus = tuple(sorted(set(chain.from_iterable(s.cpus for s in placement.slots))))
        self._host: HostSampler | None = None
        self._moved = contextlib.ExitStack()

    def begin(self) -> None:
        """See everything once, before the workers are told to go."""
        for watch in self.watches:
            watch.look(search=True)
        if self._counting.events:
            self._attach()

    def mark(self) -> None:
        """Count from here, and leave the launch's CPUs to it where there are others."""
        away = self._moved.enter_context(keep_off_cpus(self._cpus))
        self._host = HostSampler(
            cpus=self._cpus,
            processes=lambda: (self._supervision.pid, *below(self._supervision.pid)),
            ours=lambda: (*(() if away else (os.getpid(),)), *chain(*map(below, self._company))),
            threads=self._threads,
            suspended_ns=lambda: max((watch.suspended_ns for watch in self.watches), default=0),
            gpus=self._counting.gpus,
        )
        for watch in self.watches:
            watch.mark()
        self._host.mark()
        for perf in self._perfs:
            perf.count()

    def look(self) -> None:
        """See every thread, and the host if it is time for that."""
        for watch in self.watches:
            watch.look()
        if self._host is not None and self._host.due:
            self._host.look()

    def end(self) -> None:
        """See everything a last time, as the workers are through."""
        for perf in self._perfs:
            perf.stop()
        for watch in self.watches:
            watch.look()
        if self._host is not None:
            self._host.look()
        for watch in self.watches:
            watch.look(search=True)

    def close(self) -> None:
        """No more looks."""
        self._moved.close()
        self.threads = tuple(watch.close() for watch in self.watches)
        if self._host is not None:
            self.host = self._host.close()
            self._host = None
            found = counted(self._counting, self._perfs, self.threads, self.host)
            self.counters, self.of_workers = found.whole, found.workers
        else:
            for perf in self._perfs:
                perf.close()

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

    def _attach(self) -> None:
        """A `perf stat` for each worker, and one for the launch's other processes."""
        each = [watch.processes for watch in self.watches]
        rest = frozenset(self._beside()).difference(*each)
        for number, pids in enumerate((*each, rest) if rest else each):
            folder = self._scratch / f"perf-{number}"
            folder.mkdir()
            perf = Perf(self._counting.events, self._supervision, folder)
            self._perfs.append(perf)
            perf.start(pids)

    def _threads(self) -> Threads | None:
        for watch in self.watches:
            watch.count()
        return together([watch.threads for watch in self.watches])
