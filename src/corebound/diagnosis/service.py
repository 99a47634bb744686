"""Rules about a running service that no scenario needs: how it was started, and its neighbours.

A scenario sets the CPUs, the variables and the priority of its launches itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from corebound.diagnosis.evidence import LEAST_THROTTLED, Evidence, Finding
from corebound.diagnosis.host import throttled_text
from corebound.diagnosis.service_evidence import (
    LEAST_WAIT,
    Pool,
    ServiceEvidence,
    allowed_cpus,
    pools,
    ready_ns,
    thread_variables,
    what_sets_threads,
)
from corebound.machine.topology import cpu_list
from corebound.planning.placement import threads_within_quota
from corebound.records.service_use import ProcessUse, ThreadUse
from corebound.scenario.settings import OPENMP_LIBRARIES
from corebound.units import counted, cpu_quota, percent, significant, size

# Two threads on one CPU wait for half of their ready time. The rules about threads use the same.
_PINNED_WAIT = 0.3
# A thread that waits actively is ready all the time, and the thread that gives it work is not.
_SPINNING, _GIVING_WORK = 0.9, 0.8
# Intel's default is 200 ms; longer than this, threads spin between most requests of a service.
_LONG_BLOCKTIME_MS = 1_000
_MANY_SPINS = 10_000_000
# A thread that is always busy, and what all others may use beside it.
_ALWAYS, _NEXT_TO_NOTHING = 0.9, 0.1
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
_POLICIES = {3: "SCHED_BATCH", 5: "SCHED_IDLE"}


def throttled_by_parent(service: ServiceEvidence, _: Evidence) -> Finding | None:
    """The quota that stopped threads is of an ancestor of its cgroup, so of all groups in it."""
    group, share = service.group, service.throttled_share
    if group is None or group.is_own or share is None or share < LEAST_THROTTLED:
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
    threads, wait = service.threads or 0, service.wait_share or 0
    if not service.is_pinned or threads < 2 or wait < _PINNED_WAIT:
        return None
    allowed = cpu_list(cpu.id for cpu in evidence.topology.allowed)
    line = f"taskset -apc {allowed} {service.active[0].process.pid}"
    return service.finding(
        rule="pinned-to-one-cpu",
        what=f"{threads} threads may only run on CPU {cpu_list(service.cpus)}, although its group"
        f" allows {allowed}.",
        evidence=(f"run-queue wait: {percent(wait, 0)} of ready time",),
        fix=f"Remove the binding at its start (taskset, CPUAffinity=, GOMP_CPU_AFFINITY), or now:"
        f" `{line}`. If one CPU is intended, set OMP_NUM_THREADS=1.",
        line=line,
        times_ratio=1 / (1 - min(wait, 0.9)),
    )


def spinning(service: ServiceEvidence, _: Evidence) -> Finding | None:
    """A pool uses CPU time while it waits for work."""
    for process in service.active:
        computing = service.computing(process)
        variable, runtime = _active_wait(process), _spinning_runtime(process)
        if len(computing) < 2 or not (variable or runtime):
            continue
        workers = max((pool.threads for pool in pools(process, computing)), key=len, default=())
        others = set(process.threads) - set(workers)
        least = min((one.ready_ns for one in workers), default=0)
        gives = max((one.ready_ns for one in others), default=0)
        duration_ns = service.use.duration_ns
        is_idle_work = least >= _SPINNING * duration_ns and gives <= _GIVING_WORK * duration_ns
        is_crowded = bool(variable) and len(computing) > _capacity(service, process)
        if not is_idle_work and not is_crowded:
            continue
        cure, line = _passive(process, runtime)
        because = f" with {variable}" if variable else f" ({runtime} spins by default)"
        lines = [f"{len(workers)} threads of the pool are busy {_percents(workers, duration_ns)}"]
        if is_idle_work:
            lines.append(f"the thread that gives them work: {percent(gives / duration_ns, 0)}")
        if is_crowded:
            lines.append(
                f"{len(computing)} threads for {_capacity(service, process)} CPUs: those that wait"
                " take the CPU from those that work"
            )
        return service.finding(
            rule="spinning",
            what=f"A pool of {len(workers) + 1} threads waits actively{because}.",
            evidence=tuple(lines),
            fix=cure,
            line=line,
            certainty="certain" if variable and is_idle_work else "likely",
            processes=(process,),
        )
    return None


def swapping(service: ServiceEvidence, _: Evidence) -> Finding | None:
    """It waits for memory that is in swap."""
    swap = sum(one.process.swap_bytes or 0 for one in service.use.processes)
    if service.major_faults_per_s < _SWAP_FAULTS or swap < _LEAST_SWAP_BYTES:
        return None
    return service.finding(
        rule="swapping",
        tone="bad",
        what=f"It waits for memory from swap: {counted(service.major_faults_per_s)} major page"
        " faults per second.",
        evidence=(f"{size(swap)} of its memory is in swap",),
        fix="Give it more memory (`memory.max`, a pod's limit, the host), load less (a smaller"
        " model, fewer workers), or forbid swap for it: `memory.swap.max` 0.",
        line="MemorySwapMax=0",
        processes=_faulting(service),
        times_ratio=2,
    )


def major_faults(service: ServiceEvidence, _: Evidence) -> Finding | None:
    """It reads the same files from disk again and again, because memory is short."""
    swap = sum(one.process.swap_bytes or 0 for one in service.use.processes)
    if service.major_faults_per_s < _FILE_FAULTS or swap >= _LEAST_SWAP_BYTES:
        return None
    return service.finding(
        rule="major-faults",
        tone="bad",
        what=f"It waits for the disk in {counted(service.major_faults_per_s)} page faults per"
        " second, without any swap.",
        evidence=("its mapped files (a model, a database, libraries) do not stay in memory",),
        fix="Raise its memory limit, or load the file instead of mapping it (llama.cpp:"
        " `--no-mmap`). Right after a start this is normal.",
        processes=_faulting(service),
        times_ratio=2,
    )


def huge_pages_off(service: ServiceEvidence, _: Evidence) -> Finding | None:
    """A process with much memory of its own uses it in small pages."""
    mode = service.use.huge_pages
    for process in service.active:
        own = process.process.anonymous_bytes or 0
        faults = process.minor_faults / service.use.duration_ns * 1e9
        huge = process.process.huge_bytes
        if own < _LEAST_HUGE_BYTES or ready_ns(process) < service.use.duration_ns / 2:
            continue
        if process.process.huge_disabled:
            why = "they are disabled for the process (prctl)"
        elif mode == "never":
            why = "the host's mode is `never`"
        elif mode == "madvise" and faults >= _MANY_FAULTS and (huge or 0) < _HUGE_SHARE * own:
            why = "the host's mode is `madvise`, and the program does not ask for them"
        else:
            continue
        line = "echo always > /sys/kernel/mm/transparent_hugepage/enabled"
        if process.process.huge_disabled:
            line = ""
        elif mode == "madvise":
            line = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
        return service.finding(
            rule="huge-pages-off",
            what=f"{size(own)} of memory is in small pages: {why}.",
            evidence=(
                f"{size(huge)} in huge pages" if huge is not None else "no huge pages",
                f"{counted(faults)} minor page faults per second",
            ),
            fix=f"Allow them: `{line}`."
            if line
            else "Start it without what disables them: `PR_SET_THP_DISABLE` is inherited.",
            line=line,
            processes=(process,),
        )
    return None


def low_priority(service: ServiceEvidence, _: Evidence) -> Finding | None:
    """Its threads run at a lower priority than others."""
    for process in service.active:
        threads = service.computing(process)
        nice = max((thread.nice for thread in threads), default=0)
        policy = next((_POLICIES[one.policy] for one in threads if one.policy in _POLICIES), None)
        if nice <= 0 and policy is None:
            continue
        pid, wait = process.process.pid, service.wait_share or 0
        line = f"renice -n 0 -p $(ls /proc/{pid}/task)"
        if policy is not None:
            line = f"chrt --all-tasks --other --pid 0 {pid}"
        has = " and ".join(filter(None, (f"nice {nice}" if nice > 0 else "", policy)))
        waits = wait >= LEAST_WAIT
        return service.finding(
            rule="low-priority",
            what=f"Its threads run with {has}: others take the CPU first.",
            evidence=(f"run-queue wait: {percent(wait, 0)} of ready time",),
            fix=f"Start it without `nice` or `chrt` (systemd: `Nice=`, `CPUSchedulingPolicy=`), or"
            f" now: `{line}`." + ("" if waits else " While the CPUs are free, it costs nothing."),
            line=line,
            certainty="certain" if waits else "possible",
            processes=(process,),
            times_ratio=1 / (1 - min(wait, 0.9)) if waits else 1,
        )
    return None


def autogroup(service: ServiceEvidence, _: Evidence) -> Finding | None:
    """The kernel shares CPU time between sessions, and that decides what the service gets."""
    if not service.use.autogroups or service.use.group.strip("/") or not service.is_kept_waiting:
        return None
    for process in service.active:
        group = process.process.autogroup
        nice = {thread.nice for thread in service.computing(process)} - {0}
        if group is None or not (group[1] > 0 or nice):
            continue
        pid = process.process.pid
        line = f"echo 0 > /proc/{pid}/autogroup"
        what = f"Its session (autogroup {group[0]}) has nice {group[1]}"
        if group[1] <= 0:
            what = f"Its nice value ({min(nice)}) counts only within its session"
            line = f"echo {min(nice)} > /proc/{pid}/autogroup"
        return service.finding(
            rule="autogroup",
            what=f"{what}: the kernel shares CPU time between sessions (autogroup).",
            evidence=(f"run-queue wait: {percent(service.wait_share or 0, 0)} of ready time",),
            fix=f"`{line}`, switch it off (`sysctl kernel.sched_autogroup_enabled=0`), or start the"
            " service with systemd, in a cgroup of its own.",
            line=line,
            processes=(process,),
        )
    return None


def low_cpu_weight(service: ServiceEvidence, _: Evidence) -> Finding | None:
    """Its cgroup, or an ancestor, has a low weight, and its neighbours are busy."""
    weight = service.use.weight
    if weight is None or weight.weight > _LOW_WEIGHT or not service.disturbed("foreign load"):
        return None
    line = "CPUWeight=100"
    return service.finding(
        rule="low-cpu-weight",
        what=f"Its cgroup has a CPU weight of {significant(weight.weight, 2)} (the default is 100),"
        " and its neighbours are busy.",
        evidence=(
            f"/{weight.folder}",
            f"run-queue wait: {percent(service.wait_share or 0, 0)} of ready time",
            f"others used {percent(service.foreign_share, 0)} of its CPUs",
        ),
        fix=f"Raise its weight: a pod's CPU request, `--cpu-shares`, or in its unit `{line}`.",
        line=line,
    )


def two_openmp_runtimes(service: ServiceEvidence, _: Evidence) -> Finding | None:
    """A process has loaded several OpenMP runtimes, each with a pool of its own."""
    for process in service.active:
        loaded = [name for name in process.process.libraries if _openmp(name)]
        kinds = {_openmp(name) for name in loaded}
        computing = service.computing(process)
        is_preloaded = _openmp_in(process.process.variables.get("LD_PRELOAD", ""))
        is_crowded = len(computing) > _capacity(service, process)
        if len(loaded) < 2 or is_preloaded or (len(kinds) < 2 and not is_crowded):
            continue
        if len(computing) < 2:
            continue
        return service.finding(
            rule="two-openmp-runtimes",
            what=f"{len(loaded)} OpenMP runtimes are loaded in one process, each with its own"
            " threads.",
            evidence=(", ".join(loaded), f"{len(computing)} threads compute"),
            fix="Use builds that share one runtime (one package manager for all), or preload one:"
            f" `LD_PRELOAD={loaded[0].partition(' ')[0]}`. For MKL, MKL_THREADING_LAYER=GNU.",
            line=f"LD_PRELOAD={loaded[0].partition(' ')[0]}",
            processes=(process,),
        )
    return None


def thread_variable_ignored(service: ServiceEvidence, evidence: Evidence) -> Finding | None:
    """A variable limits the threads, but a pool of the process has more."""
    for process in service.active:
        variables = thread_variables(process)
        if not variables or not process.process.libraries:
            continue
        name, number = max(variables.items(), key=lambda item: item[1])
        pool = next(iter(pools(process, service.computing(process))), None)
        if pool is None or pool.size <= number or not _is_team(pool, process, evidence):
            continue
        setting, line = what_sets_threads(process, number, "")
        cure = f"This variable does not set them. Set {setting}."
        if line.partition("=")[0] in variables:
            cure = "The number is set in its code (torch.set_num_threads, omp_set_num_threads):"
            cure, line = f"{cure} lower it there.", ""
        return service.finding(
            rule="thread-variable-ignored",
            what=f"{name}={number} is set, but a pool of {pool.size} threads computes.",
            evidence=(
                f"{len(pool.threads)} threads that started together compute",
                f"libraries: {', '.join(process.process.libraries[:4])}",
            ),
            fix=cure,
            line=line,
            processes=(process,),
        )
    return None


def variable_exceeds_cpus(service: ServiceEvidence, _: Evidence) -> Finding | None:
    """A variable asks for more threads than CPUs or quota, and they exist."""
    for process in service.active:
        capacity = _capacity(service, process)
        too_large = {
            name: number for name, number in thread_variables(process).items() if number > capacity
        }
        if not too_large:
            continue
        name, number = max(too_large.items(), key=lambda item: item[1])
        # A pool that works in bursts hardly computes, but all of it was awake.
        awake = sum(thread.ready_ns > 0 for thread in process.threads)
        computing = len(service.computing(process))
        if computing <= capacity and awake < number:
            continue
        cpus = len(service.affinity(process))
        best = threads_within_quota(service.runnable_cpus, cpus=max(1, cpus))
        return service.finding(
            rule="variable-exceeds-cpus",
            what=f"{name}={number}, but it may use {cpu_quota(service.runnable_cpus or cpus)}.",
            evidence=(f"{awake} threads were awake, of which {computing} compute",),
            fix=f"Set {name}={best}.",
            line=f"{name}={best}",
            processes=(process,),
            certainty="certain" if computing > capacity else "likely",
        )
    return None


def one_thread_works(service: ServiceEvidence, _: Evidence) -> Finding | None:
    """One thread is always busy, while the pool of its process has nothing to do."""
    if service.workers != 1 or not service.active or not any(map(service.is_free, service.cpus)):
        return None
    process = service.active[0]
    busiest = process.threads[0] if process.threads else None
    idle = [thread for thread in process.threads if thread.ready_ns == 0]
    others_ns = sum(thread.run_ns for thread in process.threads[1:])
    duration_ns = service.use.duration_ns
    pool = next(iter(pools(process, idle)), None)
    if (
        busiest is None
        or busiest.run_ns < _ALWAYS * duration_ns
        or others_ns > _NEXT_TO_NOTHING * duration_ns
        or pool is None
        or not process.process.libraries
    ):
        return None
    return service.finding(
        rule="one-thread-works",
        what=f"One thread is busy {percent(busiest.run_ns / duration_ns, 0)} of the time, while a"
        f" pool of {len(pool.threads)} idles.",
        evidence=(
            f"thread {busiest.tid} ({busiest.name})",
            f"{sum(map(service.is_free, service.cpus))} of {_cpus(len(service.cpus))} are free",
        ),
        fix="What limits it is serial: run several workers, or find in a profile what is not"
        " parallel (preprocessing in Python, small operators, a lock).",
        certainty="possible",
        processes=(process,),
    )


SERVICE_RULES = (
    throttled_by_parent,
    pinned_to_one_cpu,
    spinning,
    swapping,
    major_faults,
    huge_pages_off,
    low_priority,
    autogroup,
    low_cpu_weight,
    two_openmp_runtimes,
    thread_variable_ignored,
    variable_exceeds_cpus,
    one_thread_works,
)


def _capacity(service: ServiceEvidence, process: ProcessUse) -> int:
    """The threads that a process can run at once, by its CPUs and by the tightest quota."""
    cpus = len(service.affinity(process)) or 1
    quota = min((one.quota.cpus for one in service.use.quotas), default=cpus)
    return max(1, min(cpus, math.ceil(quota)))


def _cpus(number: int) -> str:
    return f"{number} CPU{'' if number == 1 else 's'}"


def _is_team(pool: Pool, process: ProcessUse, evidence: Evidence) -> bool:
    """Whether threads are a library's pool, not threads of a server that compute on their own.

    Both may start together. A pool works with the main thread, or has one of the default sizes.
    """
    main = next((one for one in process.threads if one.tid == process.process.pid), None)
    if main is not None and main.ready_ns >= _TEAM_SHARE * pool.threads[0].ready_ns:
        return True
    cpus = {cpu.id for cpu in evidence.topology.cpus}
    return len(pool.threads) > 1 and pool.size in {
        len(cpus),
        evidence.cores(cpus),
        len(allowed_cpus(process)),
    }


def _percents(threads: Iterable[ThreadUse], duration_ns: int) -> str:
    """The range of how long threads were ready: `98 to 100 %`."""
    shares = sorted(min(1.0, one.ready_ns / duration_ns) for one in threads)
    low, high = percent(shares[0], 0), percent(shares[-1], 0)
    return high if low == high else f"{low.removesuffix(' %')} to {high}"


def _faulting(service: ServiceEvidence) -> tuple[ProcessUse, ...]:
    """The processes that account for a tenth of the major faults or more."""
    total = sum(one.major_faults for one in service.use.processes)
    return tuple(one for one in service.use.processes if one.major_faults >= total / 10)


def _active_wait(process: ProcessUse) -> str | None:
    """The variable that makes its threads wait actively."""
    variables = process.process.variables
    if variables.get("OMP_WAIT_POLICY", "").lower() == "active":
        return "OMP_WAIT_POLICY=active"
    limits = (("KMP_BLOCKTIME", _LONG_BLOCKTIME_MS), ("GOMP_SPINCOUNT", _MANY_SPINS))
    for name, least in limits:
        value = variables.get(name, "").lower()
        number = re.match(r"\d+", value)
        if value.startswith("inf") or (number and int(number[0]) >= least):
            return f"{name}={variables[name]}"
    return None


def _spinning_runtime(process: ProcessUse) -> str | None:
    """A loaded library whose threads spin by default for long enough to matter."""
    names = process.process.libraries
    for start in ("libiomp5", "libomp", "libonnxruntime", "onnxruntime_pybind"):
        if any(name.startswith(start) for name in names):
            return "ONNX Runtime" if "onnx" in start else start
    return None


def _passive(process: ProcessUse, runtime: str | None) -> tuple[str, str]:
    """How to make it wait passively, and the line to set."""
    if runtime == "ONNX Runtime" and _active_wait(process) is None:
        option = 'add_session_config_entry("session.intra_op.allow_spinning", "0")'
        return f"In its session options: `{option}`.", option
    line = "KMP_BLOCKTIME=0" if runtime else "OMP_WAIT_POLICY=passive"
    return f"Set {line}, and remove what makes it wait actively.", line


def _openmp(name: str) -> str | None:
    """The kind of OpenMP runtime that a library is; None if it is none."""
    return next((kind for kind, start in OPENMP_LIBRARIES.items() if name.startswith(start)), None)


def _openmp_in(preload: str) -> bool:
    return any(_openmp(path.rpartition("/")[2]) for path in re.split(r"[:\s]+", preload))
