"""Reads what /proc shows of a running service: its processes and threads, at one moment.

Nothing is written, traced or signalled. Processes and threads may end while they are read, and
another user's process hides some of its files: what is hidden is None, with its name in `hidden`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from corebound.machine.procfs import line_number, line_value, parse_numa_maps
from corebound.machine.topology import CpuId, parse_cpu_list

# Names of variables that set threads, binding, waiting or memory of compute libraries. No other
# variable is kept: the environment of a service may contain secrets.
_VARIABLES = re.compile(
    r"(OMP|GOMP|KMP|BLIS|OPENBLAS|GOTO|NUMEXPR|NUMBA|VECLIB|RAYON|POLARS|JULIA|TBB|UV|LOKY)"
    r"_[A-Z_]*(THREAD|CPU|PROC|PLACES|AFFINITY|WAIT|SPIN|BLOCKTIME|DYNAMIC|LAYER|LIBRARY)[A-Z_]*"
    r"|MKL_(NUM_THREADS|DYNAMIC|THREADING_LAYER|DOMAIN_NUM_THREADS)"
    r"|TF_NUM_(INTRA|INTER)OP_THREADS|GOMAXPROCS|PYTHON_CPU_COUNT|WEB_CONCURRENCY"
    r"|LD_PRELOAD|MALLOC_ARENA_MAX|GLIBC_TUNABLES|CUDA_VISIBLE_DEVICES"
)
_LONGEST_VALUE = 200
# Libraries that compute with pools of threads, by the beginning of the file's name.
_COMPUTE = re.compile(
    r"lib(g|i|k)?omp[5\d]*[.-]|lib(mkl_|openblas|scipy_openblas|blis|cblas|dnnl|tbb|gotoblas)"
    r"|lib(torch_cpu|onnxruntime|openvino|tensorflow_|xgboost|_?lightgbm|ggml|llama|jax|faiss)"
    r"|libjvm\.|onnxruntime_pybind|lib_lightgbm|_pywrap_tensorflow|xla_extension|mkl_"
)
# Less memory fits into the TLB well enough; counting the pages of more takes too long.
HUGE_PAGES_MATTER = range(1 << 28, 1 << 34)
# More idle threads than this are not read one by one: their names are not worth the time.
MOST_IDLE = 500
_ADMINISTRATOR = "Run it as root, or as the user of the process (CAP_SYS_PTRACE)."


class ThreadReading(Struct, frozen=True, kw_only=True, gc=False):
    """One thread at one moment.

    Attributes:
        tid: Its id; started: when it started, in clock ticks since boot.
        name: Its name (comm).
        nice: Its nice value; policy: the kernel's number of its scheduling policy.
        allowed: The CPUs it may run on; empty if not read.
    """

    tid: int
    started: int
    name: str
    nice: int
    policy: int
    allowed: tuple[CpuId, ...]


class ProcessReading(Struct, frozen=True, kw_only=True):
    """One process at one moment; unknown values are None.

    Attributes:
        pid: Its id here; inner_pid: in its own PID namespace.
        started: When it started, in clock ticks since boot, which no later process of this id has.
        parent: The id of its parent.
        user: The id of its user.
        command: Its words.
        allowed: The CPUs that its main thread may run on.
        libraries: The names of the compute libraries that it has mapped, a name for each file.
        variables: The variables that it was started with and that matter.
        resident_bytes, anonymous_bytes, swap_bytes: Its memory, its own memory, and what is in
            swap; huge_bytes: its transparent huge pages.
        huge_disabled: Whether these are disabled for it.
        node_bytes: Its own memory by node.
        autogroup: The number and the nice value of its autogroup.
        hidden: The files that could not be read.
    """

    pid: int
    inner_pid: int | None
    started: int
    parent: int
    name: str
    user: int | None
    command: tuple[str, ...]
    allowed: tuple[CpuId, ...]
    libraries: tuple[str, ...]
    variables: dict[str, str]
    resident_bytes: int | None
    anonymous_bytes: int | None
    swap_bytes: int | None
    huge_bytes: int | None
    huge_disabled: bool
    node_bytes: dict[int, int]
    autogroup: tuple[int, int] | None
    hidden: tuple[str, ...]


class Schedule(Struct, frozen=True, gc=False):
    """CPU time and run-queue wait of a thread since it started, and how often it began to run."""

    run_ns: int
    wait_ns: int
    slices: int


class ProcessTotals(Struct, frozen=True, kw_only=True, gc=False):
    """What a process has used since it started, ended threads included.

    `cpu_ticks` includes the children that it has waited for; the others are as in `ProcessReading`.
    """

    started: int
    parent: int
    cpu_ticks: int
    minor_faults: int
    major_faults: int


class ProcessFiles:
    """Reads processes below a root: `/`, or a folder with a saved `proc/`."""

    def __init__(self, root: str = "/") -> None:
        self._proc = f"{root.rstrip('/')}/proc"
        self._is_live = root == "/"

    def processes(self) -> dict[int, tuple[int, int, str]]:
        """Parent, start time and name of every process that is no zombie, by id."""
        found = {}
        for entry in self._names(""):
            if entry.isdecimal() and (fields := self._stat(entry)) is not None:
                name, rest = fields
                if rest[0] not in b"ZX":
                    found[int(entry)] = (int(rest[1]), int(rest[19]), name)
        return found

    def started(self, pid: int) -> int | None:
        """When a process started; None if it has ended."""
        fields = self._stat(str(pid))
        return None if fields is None or fields[1][0] in b"ZX" else int(fields[1][19])

    def command(self, pid: int) -> tuple[str, ...]:
        """The words of a process's command line; empty of a kernel thread."""
        return _words(self._read(f"{pid}/cmdline", 1 << 16) or b"")

    def totals(self, pid: int) -> ProcessTotals | None:
        """What a process has used since it started; None if it has ended."""
        fields = self._stat(str(pid))
        if fields is None or fields[1][0] in b"ZX":
            return None
        rest = fields[1]
        return ProcessTotals(
            started=int(rest[19]),
            parent=int(rest[1]),
            cpu_ticks=sum(map(int, rest[11:15])),
            minor_faults=int(rest[7]),
            major_faults=int(rest[9]),
        )

    def schedules(self, pid: int) -> dict[int, Schedule]:
        """CPU time and wait of each thread of a process: one file for each."""
        found = {}
        for tid in self._names(f"{pid}/task"):
            fields = (self._read(f"{pid}/task/{tid}/schedstat", 128) or b"").split()
            if len(fields) == 3:
                found[int(tid)] = Schedule(*map(int, fields))
        return found

    def thread(self, pid: int, tid: int, *, with_cpus: bool) -> ThreadReading | None:
        """One thread; None if it has ended. `with_cpus` reads the CPUs that it may run on."""
        fields = self._stat(f"{pid}/task/{tid}")
        if fields is None:
            return None
        name, rest = fields
        return ThreadReading(
            tid=tid,
            started=int(rest[19]),
            name=name,
            nice=int(rest[16]),
            policy=int(rest[38]),
            allowed=self._allowed(pid, tid) if with_cpus else (),
        )

    def thread_cpu(self, pid: int, tid: int) -> tuple[str, CpuId] | None:
        """A thread's state, and the CPU that it last ran on; None if it has ended."""
        fields = self._stat(f"{pid}/task/{tid}")
        return None if fields is None else (fields[1][0].decode(), CpuId(int(fields[1][36])))

    def process(self, pid: int, *, by_node: bool, huge: bool) -> ProcessReading | None:
        """One process in full; None if it has ended.

        Args:
            pid: Its id.
            by_node: Whether to read its memory by node, for which the kernel walks its pages.
            huge: The same for its huge pages, if it has memory for which they matter.
        """
        fields = self._stat(str(pid))
        status = self._read(f"{pid}/status", 1 << 16)
        if fields is None or not status:
            return None
        hidden: list[str] = []
        maps = self._visible(f"{pid}/maps", hidden)
        environment = self._visible(f"{pid}/environ", hidden)
        node_text = self._visible(f"{pid}/numa_maps", hidden) if by_node else b""
        anonymous_bytes = _kilobytes(status, b"RssAnon")
        huge = huge and (anonymous_bytes or 0) in HUGE_PAGES_MATTER
        rollup = self._visible(f"{pid}/smaps_rollup", hidden) if huge else b""
        inner = (line_value(status, b"NSpid") or b"").split()
        user = line_number(status, b"Uid")
        return ProcessReading(
            pid=pid,
            inner_pid=int(inner[-1]) if len(inner) > 1 else None,
            started=int(fields[1][19]),
            parent=int(fields[1][1]),
            name=fields[0],
            user=user,
            command=self.command(pid),
            allowed=_cpus(line_value(status, b"Cpus_allowed_list")),
            libraries=tuple(sorted(_compute_libraries(maps))),
            variables=dict(_variables(environment)),
            resident_bytes=_kilobytes(status, b"VmRSS"),
            anonymous_bytes=anonymous_bytes,
            swap_bytes=_kilobytes(status, b"VmSwap"),
            huge_bytes=_kilobytes(rollup, b"AnonHugePages"),
            huge_disabled=line_number(status, b"THP_enabled") == 0,
            node_bytes=parse_numa_maps(node_text.decode(errors="replace")),
            autogroup=_autogroup(self._read(f"{pid}/autogroup", 256) or b""),
            hidden=tuple(hidden),
        )

    def _allowed(self, pid: int, tid: int) -> tuple[CpuId, ...]:
        if not self._is_live:
            status = self._read(f"{pid}/task/{tid}/status", 1 << 16) or b""
            return _cpus(line_value(status, b"Cpus_allowed_list"))
        try:
            return tuple(CpuId(cpu) for cpu in sorted(os.sched_getaffinity(tid)))
        except OSError:
            return ()

    def _visible(self, path: str, hidden: list[str]) -> bytes:
        content = self._read(path, 1 << 26)
        if content is None:
            hidden.append(path.rpartition("/")[2])
        return content or b""

    def _stat(self, path: str) -> tuple[str, list[bytes]] | None:
        """The name in a `stat`, and its fields from field 3 of proc(5) on; None without one."""
        head, _, tail = (self._read(f"{path}/stat", 2048) or b"").rpartition(b")")
        fields = tail.split()
        # The name may contain any character, brackets included.
        return (head.partition(b"(")[2].decode(errors="replace"), fields) if fields[38:] else None

    def _names(self, path: str) -> list[str]:
        try:
            return os.listdir(f"{self._proc}/{path}")  # noqa: PTH208  # half the time of `Path`
        except OSError:
            return []

    def _read(self, path: str, most_bytes: int) -> bytes | None:
        """A file's content; None if it cannot be read. Several times as fast as `open`."""
        try:
            descriptor = os.open(f"{self._proc}/{path}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                parts = [os.read(descriptor, min(most_bytes, 1 << 16))]
                while parts[-1] and most_bytes > 1 << 12 and sum(map(len, parts)) < most_bytes:
                    parts.append(os.read(descriptor, 1 << 16))
            finally:
                os.close(descriptor)
        except OSError:
            return None
        return b"".join(parts)


def what_would_allow(hidden: Iterable[str]) -> tuple[str, str]:
    """What cannot be seen because these files are hidden, and what would allow it."""
    names = {
        "maps": "its libraries",
        "environ": "its variables",
        "numa_maps": "its memory by node",
        "smaps_rollup": "its huge pages",
    }
    seen = dict.fromkeys(names[file] for file in hidden if file in names)
    return ", ".join(seen), _ADMINISTRATOR


def _words(text: bytes) -> tuple[str, ...]:
    return tuple(text.decode(errors="replace").rstrip("\0").split("\0")) if text else ()


def _cpus(text: bytes | None) -> tuple[CpuId, ...]:
    try:
        return parse_cpu_list((text or b"").decode())
    except ValueError:
        return ()


def _kilobytes(text: bytes, start: bytes) -> int | None:
    number = line_number(text, start)
    return None if number is None else number * 1024


def _autogroup(text: bytes) -> tuple[int, int] | None:
    match = re.fullmatch(rb"/autogroup-(\d+) nice (-?\d+)\s*", text)
    return (int(match[1]), int(match[2])) if match else None


def _compute_libraries(maps: bytes) -> set[str]:
    """The compute libraries in `maps`: two files of one name in different folders are two."""
    paths = {line[line.index(b"/") :] for line in maps.splitlines() if b"/" in line}
    named: dict[str, int] = {}
    for path in paths:
        name = path.rpartition(b"/")[2].decode(errors="replace").removesuffix(" (deleted)")
        if _COMPUTE.match(name):
            named[name] = named.get(name, 0) + 1
    return {
        name if number == 0 else f"{name} (copy {number + 1})"
        for name, count in named.items()
        for number in range(count)
    }


def _variables(environment: bytes) -> Iterator[tuple[str, str]]:
    for entry in environment.split(b"\0"):
        name, _, value = entry.decode(errors="replace").partition("=")
        if _VARIABLES.fullmatch(name):
            yield name, value[:_LONGEST_VALUE]
