"""Rules about a running service that no scenario needs: how it was started, and its neighbours.

A scenario sets the CPUs, the variables and the priority of its launches itself. In the line of a
rule about a process, `$pid` is its id.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from corebound.diagnosis.evidence import LEAST_THROTTLED, Evidence, Finding
from corebound.diagnosis.host import throttled_text
from corebound.diagnosis.service_evidence import (
    ServiceEvidence,
    base_name,
    is_serial_python,
    pools,
    thread_variables,
    what_sets_threads,
)
from corebound.machine.topology import cpu_list
from corebound.records.service_use import ProcessUse, ThreadUse
from corebound.records.thread_use import LEAST_BUSY_SHARE
from corebound.scenario.settings import OPENMP_LIBRARIES
from corebound.units import counted, cpu_quota, percent, significant, size

# Two threads on one CPU wait for half of their ready time. The rules about threads use the same.
_PINNED_WAIT = 0.3
# A thread that waits actively is ready all the time, and the thread that gives it work is not.
_SPINNING, _GIVING_WORK = 0.9, 0.8
# Intel's default is 200 ms; longer than this, threads spin between most requests of a service.
_LONG_WAITS = {"KMP_BLOCKTIME": 1_000, "GOMP_SPINCOUNT": 10_000_000}
# Variables that set how threads wait, and their values with which they do not spin.
_PASSIVE = {
    "OMP_WAIT_POLICY": "passive",
    "KMP_LIBRARY": "throughput",
    "KMP_BLOCKTIME": "0",
    "GOMP_SPINCOUNT": "0",
}
# A thread that is always busy, and what each other thread of its pool may use beside it.
_ALWAYS, _NEXT_TO_NOTHING = 0.9, 0.01
# Others could not use less than this, so it does not matter that only one thread works.
_LEAST_FREE_CPUS = 0.5
# A single idle thread is seldom a pool: PyTorch with one thread has a helper of its own.
_LEAST_IDLE = 2
# Threads that take turns behind a lock are ready for one CPU in all, and a little more, because
# those that wait wake up every 5 ms to ask for it (CPython's switch interval): 200 times a second,
# and as often again to hand it over.
_TAKING_TURNS, _TURNS_PER_S = (0.93, 1.25), (50, 600)
# The thread that gives a pool work also computes: for at least this share of what the others do.
_TEAM_SHARE = 0.6
# Page faults a second that wait for a disk: of swap, and of files, which a program also reads once.
_SWAP_FAULTS, _FILE_FAULTS = 5, 50
_LEAST_SWAP_BYTES = 1 << 20
# Faults of small pages a second from which allocating takes a notable part of a CPU: each takes
# 0.5 to 1 µs, and more in a virtual machine.
_MANY_FAULTS = 20_000
_LEAST_HUGE_BYTES, _HUGE_SHARE = 1 << 28, 0.1
# The default is 100; at half of it, a group gets a third of a CPU that it shares.
_LOW_WEIGHT = 50
_ALWAYS_HUGE = "echo always > /sys/kernel/mm/transparent_hugepage/enabled"
_POLICIES = {3: "SCHED_BATCH", 5: "SCHED_IDLE"}


def throttled_by_parent(service: ServiceEvidence, _: Evidence) -> Finding | None:
    """The quota that stopped threads is of an ancestor of its cgroup, so of all groups in it."""
    group, share = service.group, service.throttled_share or 0
    if group is None or group.is_own or share < LEAST_THROTTLED:
        return None
    return service.finding(
        rule="throttled-by-parent",
        tone="bad",
        what=f"The CPU quota of {cpu_quota(group.quota.cpus)} of a parent cgroup throttles it:"
        f" {percent(share, 0)} of periods.",
        evidence=(f"/{group.folder}: {throttled_text(group.quota)}",),
        fix="Raise the limit of the parent (a pod's or a slice's), or move out what shares it: the"
        " quota is for all groups below it together.",
    )


def pinned_to_one_cpu(service: ServiceEvidence, evidence: Evidence) -> Finding | None:
    """A process with several busy threads may use one CPU, although its group has more."""
    threads = service.threads or 0
    if not service.is_pinned or threads < 2 or (service.wait_share or 0) < _PINNED_WAIT:
        return None
    allowed = cpu_list(cpu.id for cpu in evidence.topology.allowed)
    line = f"taskset -apc {allowed} {service.active[0].pid}"
    return service.finding(
        rule="pinned-to-one-cpu",
        what=f"{threads} threads may only run on CPU {cpu_list(service.cpus)}, although its group"
        f" allows {allowed}.",
        evidence=(service.waiting_line,),
        fix=f"Remove the binding at its start (taskset, CPUAffinity=, GOMP_CPU_AFFINITY), or now:"
        f" `{line}`. If one CPU is intended, set OMP_NUM_THREADS=1.",
        line=line,
        times_ratio=service.waiting_ratio,
    )


def memory_faults(service: ServiceEvidence, _: Evidence) -> Finding | None:
    """It waits for memory that is in swap, or reads the same files from disk again and again."""
    swaps = service.swap_bytes >= _LEAST_SWAP_BYTES
    if service.major_faults_per_s < (_SWAP_FAULTS if swaps else _FILE_FAULTS):
        return None
    faults = f"{counted(service.major_faults_per_s)}{' major' if swaps else ''} page faults"
    what = f"It waits for the disk in {faults} per second, without any swap."
    seen = "its mapped files (a model, a database, libraries) do not stay in memory"
    fix = (
        "Raise its memory limit, or load the file instead of mapping it (llama.cpp: `--no-mmap`)."
        " Right after a start this is normal."
    )
    if swaps:
        what = f"It waits for memory from swap: {faults} per second."
        seen = f"{size(service.swap_bytes)} of its memory is in swap"
        fix = (
            "Give it more memory (`memory.max`, a pod's limit, the host), load less (a smaller"
            " model, fewer workers), or forbid swap for it: `memory.swap.max` 0."
        )
    processes = service.use.processes
    total = sum(process.major_faults for process in processes)
    return service.finding(
        rule="swapping" if swaps else "major-faults",
        tone="bad",
        what=what,
        evidence=(seen,),
        fix=fix,
        line="MemorySwapMax=0" if swaps else "",
        processes=[process for process in processes if process.major_faults >= total / 10],
        times_ratio=2,
    )


def low_cpu_weight(service: ServiceEvidence, _: Evidence) -> Finding | None:
    """Its cgroup, or an ancestor, has a low weight, and its neighbours are busy."""
    weight, disturbed = service.use.weight, service.disturbed("foreign load")
    if weight is None or weight.weight > _LOW_WEIGHT or disturbed is None:
        return None
    line = "CPUWeight=100"
    return service.finding(
        rule="low-cpu-weight",
        what=f"Its cgroup has a CPU weight of {significant(weight.weight, 2)} (the default is 100),"
        " and its neighbours are busy.",
        evidence=(f"/{weight.folder}", *disturbed.lines),
        fix=f"Raise its weight: a pod's CPU request, `--cpu-shares`, or in its unit `{line}`.",
        line=line,
    )


SERVICE_RULES = (throttled_by_parent, pinned_to_one_cpu, memory_faults, low_cpu_weight)


def spinning(process: ProcessUse, service: ServiceEvidence, _: Evidence) -> Finding | None:
    """A pool uses CPU time while it waits for work."""
    computing, duration_ns = service.computing[process.pid], service.use.duration_ns
    active, passive = _wait_variables(process)
    kinds = {_openmp(name): name for name in process.libraries}
    runtime = None if passive else kinds.get("intel") or kinds.get("llvm")
    # ONNX Runtime has a pool of its own, which the variables of OpenMP do not set.
    is_onnx = runtime is None and any("onnxruntime" in name for name in process.libraries)
    if len(computing) < 2 or not (active or runtime or is_onnx):
        return None
    workers = _largest_pool(process, computing)
    least = min((thread.ready_ns for thread in workers), default=0)
    gives = max((thread.ready_ns for thread in set(process.threads) - set(workers)), default=0)
    capacity = service.capacity(process)
    lines = []
    if workers:
        lines.append(f"{len(workers)} threads of the pool are busy {_busy(workers, duration_ns)}")
    if is_idle_work := least >= _SPINNING * duration_ns and gives <= _GIVING_WORK * duration_ns:
        lines.append(f"the thread that gives them work: {percent(gives / duration_ns, 0)}")
    if is_crowded := bool(active) and len(computing) > capacity:
        lines.append(
            f"{len(computing)} threads for {capacity} CPUs: those that wait take the CPU from those"
            " that work"
        )
    if not is_idle_work and not is_crowded:
        return None
    # What makes it wait actively is replaced, or it would still count.
    line = " ".join(f"{name}={_PASSIVE[name]}" for name in active or ("KMP_BLOCKTIME",))
    if is_onnx and not active:
        line = 'add_session_config_entry("session.intra_op.allow_spinning", "0")'
    because = f"({runtime or 'ONNX Runtime'} spins by default)"
    if active:
        because = "with " + " ".join(f"{name}={value}" for name, value in active.items())
    return service.finding(
        rule="spinning",
        what=f"A pool of {len(workers) + 1} threads waits actively {because}.",
        evidence=tuple(lines),
        fix=f"Set {line}.",
        line=line,
        certainty="certain" if active and is_idle_work else "likely",
        processes=(process,),
    )


def huge_pages_off(process: ProcessUse, service: ServiceEvidence, _: Evidence) -> Finding | None:
    """A process with much memory of its own uses it in small pages."""
    mode, own = service.use.huge_pages, process.anonymous_bytes or 0
    seconds = service.use.duration_ns / 1e9
    faults_per_s = process.minor_faults / seconds
    if own < _LEAST_HUGE_BYTES or process.ready_ns < seconds * 1e9 / 2:
        return None
    is_unasked = (process.huge_bytes or 0) < _HUGE_SHARE * own and faults_per_s >= _MANY_FAULTS
    if process.huge_disabled:
        why, line = "they are disabled for the process (prctl)", ""
    elif mode == "never":
        why = "the host's mode is `never`"
        line = _ALWAYS_HUGE
    elif mode == "madvise" and is_unasked:
        why = "the host's mode is `madvise`, and the program does not ask for them"
        line = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
        if line.partition("=")[2] in process.variables.get("GLIBC_TUNABLES", ""):
            line = _ALWAYS_HUGE  # another allocator does not read it
    else:
        return None
    huge = process.huge_bytes
    return service.finding(
        rule="huge-pages-off",
        what=f"{size(own)} of memory is in small pages: {why}.",
        evidence=(
            "no huge pages" if huge is None else f"{size(huge)} in huge pages",
            f"{counted(faults_per_s)} minor page faults per second",
        ),
        fix=f"Allow them: `{line}`."
        if line
        else "Start it without what disables them: `PR_SET_THP_DISABLE` is inherited.",
        line=line,
        processes=(process,),
    )


def low_priority(process: ProcessUse, service: ServiceEvidence, _: Evidence) -> Finding | None:
    """Its threads run at a lower priority than others."""
    threads = service.computing[process.pid]
    nice = max((thread.nice for thread in threads), default=0)
    policy = next(
        (_POLICIES[thread.policy] for thread in threads if thread.policy in _POLICIES), ""
    )
    if nice <= 0 and not policy:
        return None
    lines = {
        "chrt --all-tasks --other --pid 0 $pid": bool(policy),
        "renice -n 0 -p $(ls /proc/$pid/task)": nice > 0,
    }
    line = "; ".join(text for text, is_needed in lines.items() if is_needed)
    has = " and ".join(filter(None, (f"nice {nice}" if nice > 0 else "", policy)))
    waits = service.is_kept_waiting
    return service.finding(
        rule="low-priority",
        what=f"Its threads run with {has}: others take the CPU first.",
        evidence=(service.waiting_line,),
        fix=f"Start it without `nice` or `chrt` (systemd: `Nice=`, `CPUSchedulingPolicy=`), or"
        f" now: `{line}`." + ("" if waits else " While the CPUs are free, it costs nothing."),
        line=line,
        certainty="certain" if waits else "possible",
        processes=(process,),
        times_ratio=service.waiting_ratio if waits else 1,
    )


def autogroup(process: ProcessUse, service: ServiceEvidence, _: Evidence) -> Finding | None:
    """The kernel shares CPU time between sessions, and that decides what the service gets."""
    is_alone = service.use.autogroups and not service.use.group.strip("/")
    nice = min((thread.nice for thread in service.computing[process.pid]), default=0)
    if not is_alone or not service.is_kept_waiting or process.autogroup is None:
        return None
    number, of_session = process.autogroup
    if of_session > 0:
        what, nice = f"Its session (autogroup {number}) has nice {of_session}", min(0, nice)
    elif nice < of_session:
        what = f"Its nice value ({nice}) counts only within its session"
    else:
        return None
    line = f"echo {nice} > /proc/$pid/autogroup"
    return service.finding(
        rule="autogroup",
        what=f"{what}: the kernel shares CPU time between sessions (autogroup).",
        evidence=(service.waiting_line,),
        fix=f"`{line}`, switch it off (`sysctl kernel.sched_autogroup_enabled=0`), or start the"
        " service with systemd, in a cgroup of its own.",
        line=line,
        processes=(process,),
    )


def two_openmp_runtimes(
    process: ProcessUse, service: ServiceEvidence, _: Evidence
) -> Finding | None:
    """A process has loaded several OpenMP runtimes, each with a pool of its own."""
    loaded = {name: path for name, path in process.libraries.items() if _openmp(name)}
    computing = len(service.computing[process.pid])
    is_crowded = computing > service.capacity(process)
    preloaded = re.split(r"[:\s]+", process.variables.get("LD_PRELOAD", ""))
    if (
        len(loaded) < 2
        or computing < 2
        or any(_openmp(path.rpartition("/")[2]) for path in preloaded)
        or (len(set(map(_openmp, loaded))) < 2 and not is_crowded)
    ):
        return None
    # Those of Intel and LLVM have the functions of GNU's, but not the other way round.
    best = min(loaded, key=lambda name: (_openmp(name) == "gnu", name))
    line = f"LD_PRELOAD={loaded[best]}"
    return service.finding(
        rule="two-openmp-runtimes",
        what=f"{len(loaded)} OpenMP runtimes are loaded in one process, each with its own threads.",
        evidence=(", ".join(loaded), f"{computing} threads compute"),
        fix="Use builds that share one runtime (one package manager for all), or preload one:"
        f" `{line}`. For MKL, MKL_THREADING_LAYER=GNU.",
        line=line,
        processes=(process,),
    )


def thread_variable_ignored(
    process: ProcessUse, service: ServiceEvidence, evidence: Evidence
) -> Finding | None:
    """A variable limits the threads, but a pool of the process has more."""
    variables = thread_variables(process)
    pool = _largest_pool(process, service.computing[process.pid])
    if not variables or not process.libraries or not pool:
        return None
    name, number = max(variables.items(), key=lambda item: item[1])
    if len(pool) < number or not _is_team(pool, process, evidence):
        return None
    setting, line = what_sets_threads(process, len(pool) + 1, number)
    return service.finding(
        rule="thread-variable-ignored",
        what=f"{name}={number} is set, but a pool of {len(pool) + 1} threads computes.",
        evidence=(
            f"{len(pool)} threads that started together compute",
            f"libraries: {', '.join(list(process.libraries)[:4])}",
        ),
        fix=f"This variable does not set them. Set {setting}.",
        line=line,
        processes=(process,),
    )


def variable_exceeds_cpus(
    process: ProcessUse, service: ServiceEvidence, _: Evidence
) -> Finding | None:
    """A variable asks for more threads than CPUs or quota, and they exist."""
    capacity, fitting = service.capacity(process), service.fitting(process)
    exceeding = {
        name: number for name, number in thread_variables(process).items() if number > capacity
    }
    # A pool that works in bursts hardly computes, but all of it was awake.
    awake = sum(thread.ready_ns > 0 for thread in process.threads)
    computing = len(service.computing[process.pid])
    if not exceeding or (computing <= capacity and awake < max(exceeding.values())):
        return None
    has = " ".join(f"{name}={number}" for name, number in exceeding.items())
    line = " ".join(f"{name}={fitting}" for name in exceeding)
    may_use = cpu_quota(service.runnable_cpus or len(process.cpus))
    return service.finding(
        rule="variable-exceeds-cpus",
        what=f"{has}, but it may use {may_use}.",
        evidence=(f"{awake} threads were awake, of which {computing} compute",),
        fix=f"Set {line}.",
        line=line,
        processes=(process,),
        certainty="certain" if computing > capacity else "likely",
    )


def one_thread_works(process: ProcessUse, service: ServiceEvidence, _: Evidence) -> Finding | None:
    """One thread is always busy, while the pool that it belongs to, or gives work to, is idle."""
    duration_ns = service.use.duration_ns
    busiest = next(iter(process.threads), None)
    if (
        busiest is None
        or service.workers != 1
        or service.capacity(process) < 2
        or busiest.ready_ns < _ALWAYS * duration_ns
        or service.free_cpus < _LEAST_FREE_CPUS
    ):
        return None
    pool = next((threads for threads in pools(process, process.threads) if busiest in threads), ())
    if not pool and process.libraries:
        pool = _largest_pool(process, process.threads)
    elif pool:
        # A runtime starts threads for different work at once: Java's `main` and its collectors.
        pool = tuple(thread for thread in pool if base_name(thread) == base_name(busiest))
    idle = [thread for thread in pool if thread is not busiest]
    if len(idle) < _LEAST_IDLE or any(
        thread.ready_ns > _NEXT_TO_NOTHING * duration_ns for thread in idle
    ):
        return None
    variables = " ".join(f"{name}={number}" for name, number in thread_variables(process).items())
    return service.finding(
        rule="one-thread-works",
        what=f"One thread of {len(idle) + 1} works: it is busy {_busy((busiest,), duration_ns)} of"
        f" the time, while the others of its pool ({len(idle)}) idle.",
        evidence=(
            f"thread {busiest.tid} ({busiest.name})",
            f"{significant(service.free_cpus, 2)} of its {cpu_quota(len(service.cpus))} are free",
            *([f"started with {variables}"] if variables else []),
        ),
        fix="What limits it is serial: run several workers, or find in a profile what is not"
        " parallel (preprocessing in Python, small operators, a lock, a number of threads that the"
        " code or a variable limits).",
        certainty="possible",
        processes=(process,),
    )


def interpreter_lock(process: ProcessUse, service: ServiceEvidence, _: Evidence) -> Finding | None:
    """Several Python threads compute, but the interpreter's lock lets one run at a time."""
    duration_ns = service.use.duration_ns
    threads = [
        thread
        for thread in process.threads
        if thread.run_ns >= LEAST_BUSY_SHARE * process.threads[0].run_ns
    ]
    at_once = sum(thread.ready_ns for thread in process.threads) / duration_ns
    turns_per_s = (
        sum(thread.slices for thread in threads) / max(1, len(threads)) / duration_ns * 1e9
    )
    if (
        len(threads) < 2
        or not is_serial_python(process, duration_ns)
        or service.capacity(process) < 2
        or not _TAKING_TURNS[0] <= at_once <= _TAKING_TURNS[1]
        or not _TURNS_PER_S[0] <= turns_per_s <= _TURNS_PER_S[1]
    ):
        return None
    return service.finding(
        rule="interpreter-lock",
        what=f"{len(threads)} Python threads take turns: the interpreter's lock lets one run at a"
        " time.",
        evidence=(
            f"all of them together were ready to use {significant(at_once, 2)} CPUs",
            f"each was busy {_busy(threads, duration_ns)}, and ran {counted(turns_per_s)} times/s",
        ),
        fix="Use processes instead of threads (multiprocessing, more workers), a build of Python"
        " without the lock, or let threads that have no work wait (queue.Queue, Event) instead of"
        " asking again and again.",
        processes=(process,),
        times_ratio=min(len(threads), service.capacity(process)),
    )


PROCESS_RULES = (
    spinning,
    huge_pages_off,
    low_priority,
    autogroup,
    two_openmp_runtimes,
    thread_variable_ignored,
    variable_exceeds_cpus,
    one_thread_works,
    interpreter_lock,
)


def _largest_pool(process: ProcessUse, threads: Iterable[ThreadUse]) -> tuple[ThreadUse, ...]:
    return next(iter(pools(process, threads)), ())


def _is_team(pool: Sequence[ThreadUse], process: ProcessUse, evidence: Evidence) -> bool:
    """Whether threads are a library's pool, not threads of a server that compute on their own.

    Both may start together. A pool works with the main thread, or has one of the default sizes.
    """
    main = next((thread for thread in process.threads if thread.tid == process.pid), None)
    if main is not None and main.ready_ns >= _TEAM_SHARE * pool[0].ready_ns:
        return True
    cpus = {cpu.id for cpu in evidence.topology.cpus}
    return len(pool) > 1 and len(pool) + 1 in {len(cpus), evidence.cores(cpus), len(process.cpus)}


def _busy(threads: Iterable[ThreadUse], duration_ns: int) -> str:
    """The range of how long threads were ready: `98 to 100 %`."""
    shares = sorted(min(1.0, thread.ready_ns / duration_ns) for thread in threads)
    low, high = percent(shares[0], 0), percent(shares[-1], 0)
    return high if low == high else f"{low.removesuffix(' %')} to {high}"


def _wait_variables(process: ProcessUse) -> tuple[dict[str, str], bool]:
    """The variables that make its threads wait actively, and whether another forbids it."""
    has = {name: process.variables.get(name, "").lower() for name in _PASSIVE}
    active = {
        name: value
        for name, value in has.items()
        if value in {"active", "turnaround"}
        or (name in _LONG_WAITS and value.startswith("inf"))
        or _leading_number(value) >= _LONG_WAITS.get(name, math.inf)
    }
    passive = has["OMP_WAIT_POLICY"] == "passive" or _leading_number(has["KMP_BLOCKTIME"]) == 0
    return active, passive


def _leading_number(text: str) -> int:
    number = re.match(r"\d+", text)
    return int(number[0]) if number else -1


def _openmp(name: str) -> str | None:
    """The kind of OpenMP runtime that a library is; None if it is none."""
    return next((kind for kind, start in OPENMP_LIBRARIES.items() if name.startswith(start)), None)
