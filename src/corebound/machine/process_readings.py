"""Reads what /proc shows of a process of a running service: libraries, variables and memory.

Nothing is written, traced or signalled. Another user's process hides some of its files.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from corebound.machine import procfs
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
    r"|_?polars|_?duckdb"
)
# The note of Go's linker stands in the first bytes of its programs, which load no library.
_GO_NOTE, _NOTE_WITHIN = b"Go\0\0", 4096
# Less memory fits into the TLB well enough; counting the pages of more takes too long.
HUGE_PAGES_MATTER = range(1 << 28, 1 << 34)


class ProcessReading(Struct, frozen=True, kw_only=True):
    """One process at one moment; unknown values are None.

    Attributes:
        pid: Its id here; inner_pid: in its own PID namespace.
        started: When it started, in clock ticks since boot, which no later process of this id has.
        parent: The id of its parent.
        user: The id of its user.
        command: Its words.
        allowed: The CPUs that its main thread may run on.
        libraries: The compute libraries that it has mapped: their files by name. Go's runtime is
            one, in the program's own file.
        variables: The variables that it was started with and that matter.
        resident_bytes, anonymous_bytes, swap_bytes: Its memory, its own memory, and what is in
            swap; huge_bytes: its transparent huge pages.
        huge_disabled: Whether these are disabled for it.
        node_bytes: Its own memory by node.
        autogroup: The number and the nice value of its autogroup.
        hidden: The files of `HIDDEN` that could not be read.
    """

    pid: int
    inner_pid: int | None
    started: int
    parent: int
    name: str
    user: int | None
    command: tuple[str, ...]
    allowed: tuple[CpuId, ...]
    libraries: dict[str, str]
    variables: dict[str, str]
    resident_bytes: int | None
    anonymous_bytes: int | None
    swap_bytes: int | None
    huge_bytes: int | None
    huge_disabled: bool
    node_bytes: dict[int, int]
    autogroup: tuple[int, int] | None
    hidden: tuple[str, ...]


# What other users' processes hide: the files, and what they show.
HIDDEN = {
    "maps": "its libraries",
    "environ": "its variables",
    "numa_maps": "its memory by node",
    "smaps_rollup": "its huge pages",
}


def read_process(
    pid: int, *, proc: str = "/proc", by_node: bool, huge: bool
) -> ProcessReading | None:
    """One process; None if it has ended.

    Args:
        pid: Its id.
        proc: The folder that contains it.
        by_node: Whether to read its memory by node, for which the kernel walks its pages.
        huge: The same for its huge pages, if it has memory for which they matter.
    """
    folder = f"{proc}/{pid}"
    stat, status = procfs.process_stat(pid, proc), procfs.read(f"{folder}/status")
    if stat is None or not status:
        return None
    anonymous_bytes = _kilobytes(status, b"RssAnon")
    skipped = {"numa_maps": not by_node}
    skipped["smaps_rollup"] = not huge or (anonymous_bytes or 0) not in HUGE_PAGES_MATTER
    files = {name: procfs.readable(f"{folder}/{name}") for name in HIDDEN if not skipped.get(name)}
    maps, environment, numa_maps, rollup = (files.get(name) or b"" for name in HIDDEN)
    inner = (procfs.line_value(status, b"NSpid") or b"").split()
    autogroup = re.match(rb"/autogroup-(\d+) nice (-?\d+)", procfs.read(f"{folder}/autogroup"))
    return ProcessReading(
        pid=pid,
        inner_pid=int(inner[-1]) if len(inner) > 1 else None,
        started=stat.started,
        parent=stat.parent,
        name=stat.name,
        user=procfs.line_number(status, b"Uid"),
        command=command_line(pid, proc),
        allowed=allowed_cpus(status),
        libraries=_compute_libraries(maps) or _go_runtime(folder),
        variables=dict(_variables(environment)),
        resident_bytes=_kilobytes(status, b"VmRSS"),
        anonymous_bytes=anonymous_bytes,
        swap_bytes=_kilobytes(status, b"VmSwap"),
        huge_bytes=_kilobytes(rollup, b"AnonHugePages"),
        huge_disabled=procfs.line_number(status, b"THP_enabled") == 0,
        node_bytes=procfs.parse_numa_maps(numa_maps.decode(errors="replace")),
        autogroup=(int(autogroup[1]), int(autogroup[2])) if autogroup else None,
        hidden=tuple(name for name, content in files.items() if content is None),
    )


def command_line(pid: int, proc: str = "/proc") -> tuple[str, ...]:
    """The words of a process's command line; empty of a kernel thread."""
    text = procfs.read(f"{proc}/{pid}/cmdline").decode(errors="replace")
    return tuple(text.rstrip("\0").split("\0")) if text else ()


def allowed_cpus(status: bytes) -> tuple[CpuId, ...]:
    """The CPUs that a process or a thread may run on, from its `status`."""
    try:
        return parse_cpu_list((procfs.line_value(status, b"Cpus_allowed_list") or b"").decode())
    except ValueError:
        return ()


def _kilobytes(text: bytes, start: bytes) -> int | None:
    number = procfs.line_number(text, start)
    return None if number is None else number * 1024


def _compute_libraries(maps: bytes) -> dict[str, str]:
    """The compute libraries in `maps`: two files of one name in different folders are two."""
    paths = {line[line.index(b"/") :] for line in maps.splitlines() if b"/" in line}
    named: dict[str, list[str]] = {}
    for path in sorted(paths):
        file = path.decode(errors="replace").removesuffix(" (deleted)")
        if _COMPUTE.match(name := file.rpartition("/")[2]):
            named.setdefault(name, []).append(file)
    return {
        name if number == 0 else f"{name} (copy {number + 1})": file
        for name, files in sorted(named.items())
        for number, file in enumerate(files)
    }


def _go_runtime(folder: str) -> dict[str, str]:
    program = procfs.readable(f"{folder}/exe", is_short=True) or b""
    return {"Go runtime": f"{folder}/exe"} if _GO_NOTE in program[:_NOTE_WITHIN] else {}


def _variables(environment: bytes) -> Iterator[tuple[str, str]]:
    for entry in environment.split(b"\0"):
        name, _, value = entry.decode(errors="replace").partition("=")
        if _VARIABLES.fullmatch(name):
            yield name, value[:_LONGEST_VALUE]
