"""Running services for tests: what was seen of one, and saved trees of /proc."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from corebound.machine.cgroups import CpuWeight
from corebound.machine.topology import CpuId
from corebound.records.service_use import CpuUse, GroupUse, ProcessUse, ServiceUse, ThreadUse

from .build import a_quota_use

SECOND_NS = 1_000_000_000
DURATION_NS = 10 * SECOND_NS


def a_thread_use(
    tid: int = 100,
    *,
    run: float = 1.0,
    wait: float = 0.0,
    cpus: tuple[int, ...] = (0, 1),
    started: int | None = None,
    slices: int | None = None,
    visited: tuple[int, ...] = (),
    nice: int = 0,
    policy: int = 0,
    name: str = "app",
) -> ThreadUse:
    """A thread; `run` and `wait` are shares of the interval."""
    return ThreadUse(
        tid=tid,
        name=name,
        started=1000 if started is None else started,
        run_ns=round(run * DURATION_NS),
        wait_ns=round(wait * DURATION_NS),
        slices=100 if slices is None else slices,
        nice=nice,
        policy=policy,
        allowed=tuple(map(CpuId, cpus)),
        visited=tuple(map(CpuId, visited)),
    )


def a_pool(pid: int, number: int, **changes: Any) -> tuple[ThreadUse, ...]:
    """A process's main thread, and the others of its pool."""
    return tuple(
        a_thread_use(pid + at, started=900 if at == 0 else 1000, **changes) for at in range(number)
    )


def a_process_use(
    *threads: ThreadUse,
    pid: int = 100,
    thread_count: int | None = None,
    major_faults: int = 0,
    minor_faults: int = 0,
    libraries: Iterable[str] = (),
    **changes: Any,
) -> ProcessUse:
    """A process that works on its own memory as another user of the host."""
    threads = threads or (a_thread_use(pid),)
    process = ProcessUse(
        pid=pid,
        inner_pid=None,
        started=900,
        parent=1,
        name="app",
        user=1000,
        command=("app",),
        allowed=threads[0].allowed,
        libraries={name: f"/usr/lib/{name}" for name in libraries},
        variables={},
        resident_bytes=1 << 26,
        anonymous_bytes=1 << 26,
        swap_bytes=0,
        huge_bytes=None,
        huge_disabled=False,
        node_bytes={},
        autogroup=None,
        hidden=(),
        threads=tuple(sorted(threads, key=lambda one: -one.ready_ns)),
        thread_count=len(threads) if thread_count is None else thread_count,
        cpu_ns=sum(thread.run_ns for thread in threads),
        minor_faults=minor_faults,
        major_faults=major_faults,
    )
    return replace(process, **changes)


def a_group_use(cpus: float = 1.0, *, throttled: float = 0.0, is_own: bool = True) -> GroupUse:
    """A quota; `throttled` is the share of its periods."""
    return GroupUse(
        quota=a_quota_use(cpus=cpus, throttled=round(100 * throttled)),
        folder="sys/fs/cgroup/app",
        is_own=is_own,
    )


def a_service_use(
    *processes: ProcessUse, idle: Mapping[int, float] | None = None, **changes: Any
) -> ServiceUse:
    """A service that was watched for ten seconds; `idle` has the share of each CPU.

    By default, the host has two CPUs, and what the service does not use is idle.
    """
    processes = processes or (a_process_use(),)
    used = sum(process.cpu_ns for process in processes) / DURATION_NS
    shares = idle or dict.fromkeys(range(2), max(0.0, 1 - used / 2))
    use = ServiceUse(
        duration_ns=DURATION_NS,
        processes=processes,
        quotas=(),
        weight=CpuWeight(100, "sys/fs/cgroup/app"),
        group="/app",
        group_cpus=None,
        cpus={CpuId(cpu): CpuUse(round(share * DURATION_NS), 0) for cpu, share in shares.items()},
        own_ns=0,
        samples=40,
        huge_pages="madvise",
        autogroups=False,
        hidden=(),
    )
    return replace(use, **changes)


class ProcTree:
    """A folder with a saved `proc/` and `sys/`, which a test changes between two readings."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")
        self.cpus()

    def cpus(self, *, idle_ticks: int = 0) -> None:
        """Two CPUs with so many idle ticks each."""
        lines = [f"cpu{cpu} 0 0 0 {idle_ticks} 0 0 0 0 0 0" for cpu in range(2)]
        self.write("proc/stat", "\n".join(["cpu  0 0 0 0 0 0 0 0 0 0", *lines, "intr 1"]))

    def process(
        self,
        pid: int,
        *,
        parent: int = 1,
        started: int = 900,
        name: str = "app",
        command: str = "app\0--port\x008000\0",
        environ: str = "",
        maps: str = "",
        cgroup: str = "0::/\n",
        ticks: int = 0,
    ) -> None:
        """Write a process without its threads."""
        self.write(f"proc/{pid}/stat", _stat(pid, name, parent, started, ticks))
        self.write(f"proc/{pid}/status", f"Uid:\t1000\t1000\nNSpid:\t{pid}\t7\n{_ALLOWED}")
        self.write(f"proc/{pid}/cmdline", command)
        self.write(f"proc/{pid}/environ", environ)
        self.write(f"proc/{pid}/maps", maps)
        self.write(f"proc/{pid}/cgroup", cgroup)
        self.write(f"proc/{pid}/autogroup", "/autogroup-5 nice 0\n")

    def thread(self, pid: int, tid: int, *, run: int = 0, wait: int = 0, name: str = "app") -> None:
        """Write a thread with its CPU time and run-queue wait in nanoseconds."""
        folder = f"proc/{pid}/task/{tid}"
        self.write(f"{folder}/stat", _stat(tid, name, 1, 900, 0))
        self.write(f"{folder}/schedstat", f"{run} {wait} 5\n")
        self.write(f"{folder}/status", _ALLOWED)

    def remove(self, path: str) -> None:
        """Remove a file, as if it could not be read."""
        (self.root / path).unlink()

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


_ALLOWED = "Cpus_allowed_list:\t0-1\nVmRSS:\t 64 kB\nRssAnon:\t 32 kB\nVmSwap:\t 0 kB\n"


def _stat(pid: int, name: str, parent: int, started: int, ticks: int) -> str:
    """A line of `stat`, with fields 3 to 52 of proc(5)."""
    fields = ["0"] * 50
    fields[0], fields[1], fields[11], fields[19] = "S", str(parent), str(ticks), str(started)
    return f"{pid} ({name}) {' '.join(fields)}"
