"""Monitors one launch from outside: its threads, the host and hardware counters."""

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from corebound.launch.cpu_quota import QuotaMeter
from corebound.launch.host_sampler import HostSampler, ThreadTotals, total_threads
from corebound.launch.interleaving import keep_off_cpus
from corebound.launch.perf import CounterSupport, Perf, collect_counters
from corebound.launch.supervisor_client import Supervision
from corebound.launch.thread_sampler import ThreadSampler
from corebound.machine.procfs import descendants
from corebound.planning.models import Placement
from corebound.records.launch_record import ThreadEvidence
from corebound.records.telemetry import Counters, HostOverTime, QuotaUse


class LaunchMonitor:
    """Combines the samplers of one launch.

    Attributes:
        samplers: One thread sampler per worker, in the order of `pids`.
        threads: Observations of each worker's threads; empty until closed.
        host: Observations of the host; None until closed, or if nothing was timed.
        counters: Counter values of all the launch's processes; None as for `host`.
        worker_counters: Hardware counter values per worker; empty if none were collected.
    """

    def __init__(
        self,
        pids: Sequence[int],
        placement: Placement,
        supervision: Supervision,
        *,
        scratch: Path,
        counting: CounterSupport,
        other_processes: Callable[[], Iterable[int]] = tuple,
        other_supervisors: Iterable[int] = (),
        paused_ns: Callable[[], int] = lambda: 0,
    ) -> None:
        """Create the thread samplers.

        Args:
            pids: The workers' process ids, each the root of a process tree.
            supervision: The supervisor of all the launch's processes.
            counting: The counters to collect; without events, none are attached.
            other_processes: Lists the launch's processes that belong to no worker, such as a
                server's own. They are counted too, but their threads are not sampled.
            other_supervisors: Process ids of the supervisors of the launches it alternates
                with. Their CPU time does not count as foreign.
            paused_ns: For how long the launch has been paused because it alternates.
        """
        self.samplers = [ThreadSampler(pid, paused_ns=paused_ns) for pid in pids]
        self.threads: tuple[tuple[ThreadEvidence, ...], ...] = ()
        self.host: HostOverTime | None = None
        self.counters: Counters | None = None
        self.worker_counters: tuple[Counters, ...] = ()
        self._counting = counting
        self._other_processes = other_processes
        self._other_supervisors = tuple(other_supervisors)
        self._supervision, self._scratch = supervision, scratch
        self._perfs: list[Perf] = []
        self._cpus = tuple(sorted(set(chain.from_iterable(s.cpus for s in placement.slots))))
        self._host: HostSampler | None = None
        self._off_cpus = contextlib.ExitStack()
        self._quota = QuotaMeter(pids)

    def prepare(self) -> None:
        """Sample everything once and attach the counters, before the workers start their loop."""
        for sampler in self.samplers:
            sampler.sample(search=True)
        if self._counting.events:
            self._attach()

    def start(self) -> None:
        """Start counting, and move this process off the launch's CPUs if others are available."""
        is_away = self._off_cpus.enter_context(keep_off_cpus(self._cpus))
        self._host = HostSampler(
            cpus=self._cpus,
            processes=lambda: (self._supervision.pid, *descendants(self._supervision.pid)),
            own_processes=lambda: (
                *(() if is_away else (os.getpid(),)),
                *chain(*map(descendants, self._other_supervisors)),
            ),
            threads=self._threads,
            suspended_ns=lambda: max(
                (sampler.suspended_ns for sampler in self.samplers), default=0
            ),
            gpus=self._counting.gpus,
        )
        for sampler in self.samplers:
            sampler.start()
        self._quota.start()
        self._host.start()
        for perf in self._perfs:
            perf.start_counting()

    def sample(self) -> None:
        """Sample every thread, and the host if its next sample is due."""
        for sampler in self.samplers:
            sampler.sample()
        if self._host is not None and self._host.is_due:
            self._host.sample()

    def stop(self) -> None:
        """Sample everything a last time, after the workers have finished their loop."""
        for perf in self._perfs:
            perf.stop_counting()
        for sampler in self.samplers:
            sampler.sample()
        if self._host is not None:
            self._host.sample()
        self._quota.stop()
        for sampler in self.samplers:
            sampler.sample(search=True)

    def close(self) -> None:
        """Stop sampling and collect all observations."""
        self._off_cpus.close()
        counts = [perf.close() for perf in self._perfs]
        self.threads = tuple(sampler.close() for sampler in self.samplers)
        if self._host is not None:
            self.host = self._host.close()
            if not self.samplers:
                # Other programs cannot be told from a service that runs already.
                windows = (replace(window, foreign_ns=None) for window in self.host.windows)
                self.host = replace(self.host, windows=tuple(windows))
            self._host = None
            reason = next((perf.reason for perf in self._perfs if perf.reason is not None), None)
            found = collect_counters(self._counting, counts, self.threads, self.host, reason)
            self.counters, self.worker_counters = found.whole, found.workers

    @property
    def quota(self) -> QuotaUse | None:
        """The CPU quota of the workers, and what it did; None without a quota."""
        return self._quota.use

    @property
    def pause_s(self) -> float:
        """How long to wait before the next sample; 1 s if there are no workers."""
        return max((sampler.pause_s for sampler in self.samplers), default=1.0)

    @property
    def looks(self) -> int:
        """How many samples of threads and of the host were taken while they were timed."""
        return sum(sampler.looks for sampler in self.samplers) + (
            self.host.looks if self.host else 0
        )

    @property
    def look_ns(self) -> int:
        """CPU time used by those samples."""
        own_ns = sum(sampler.look_ns for sampler in self.samplers)
        return own_ns + (self.host.look_ns if self.host else 0)

    def _attach(self) -> None:
        """Attach one `perf stat` to each worker, and one to the launch's other processes."""
        each = [sampler.processes for sampler in self.samplers]
        rest = frozenset(self._other_processes()).difference(*each)
        for number, pids in enumerate((*each, rest) if rest else each):
            folder = self._scratch / f"perf-{number}"
            folder.mkdir()
            perf = Perf(self._counting.events, self._supervision, folder)
            self._perfs.append(perf)
            perf.start(pids)

    def _threads(self) -> ThreadTotals | None:
        for sampler in self.samplers:
            sampler.read_counts()
        return total_threads([sampler.threads for sampler in self.samplers])
