"""Rules on running services: what each reports, and what it leaves alone."""

import ast
import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from corebound.diagnosis.diagnose import SHARED_RULES, diagnose_service
from corebound.diagnosis.service import PROCESS_RULES, SERVICE_RULES
from corebound.diagnosis.service_evidence import ServiceEvidence, ServiceFinding
from corebound.machine.cgroups import CpuWeight
from corebound.machine.topology import CpuId, Topology
from corebound.records.service_use import CpuUse, ProcessUse, ServiceUse
from support.build import a_host
from support.paths import ROOT
from support.services import (
    DURATION_NS,
    a_group_use,
    a_pool,
    a_process_use,
    a_service_use,
    a_thread_use,
)

TWO_CPUS = a_host()
OPENMP = ("libgomp.so.1",)
PYTHON = ("/usr/bin/python3", "app.py")
FULL = {0: 0.0, 1: 0.0}


def workers(number: int, threads: int = 1, *, nice: int = 0, **changes: Any) -> list[ProcessUse]:
    """Processes that are alike, with threads that run for half of the time and wait as long."""
    run = changes.pop("run", 0.5)
    cpus = changes.pop("cpus", (0, 1))
    return [
        a_process_use(
            *a_pool(pid, threads, run=run, wait=0.5, nice=nice, cpus=cpus), pid=pid, **changes
        )
        for pid in range(100, 100 * (number + 1), 100)
    ]


class Situation(NamedTuple):
    """A service, its host, the rule that reports it, and a part of the line to set."""

    use: ServiceUse
    rule: str
    line: str
    host: Topology = TWO_CPUS


REPORTED = {
    "a pool larger than its CPUs": Situation(
        a_service_use(a_process_use(*a_pool(100, 8, run=0.25, wait=0.75), libraries=OPENMP)),
        "more-threads-than-cpus",
        "OMP_NUM_THREADS=2",
    ),
    "a pool larger than its quota": Situation(
        a_service_use(
            a_process_use(*a_pool(100, 2, run=0.5), libraries=OPENMP),
            quotas=(a_group_use(1.0, throttled=0.8),),
        ),
        "more-threads-than-quota",
        "OMP_NUM_THREADS=1",
    ),
    "one thread with less than a CPU": Situation(
        a_service_use(
            a_process_use(a_thread_use(run=0.5)), quotas=(a_group_use(0.5, throttled=0.9),)
        ),
        "throttled",
        "",
    ),
    "a quota that a parent shares": Situation(
        a_service_use(
            a_process_use(a_thread_use(run=0.4)),
            quotas=(a_group_use(1.0, throttled=0.9, is_own=False),),
        ),
        "throttled-by-parent",
        "",
    ),
    "a pool on one CPU of two": Situation(
        a_service_use(a_process_use(*a_pool(100, 4, run=0.25, wait=0.75, cpus=(0,)))),
        "pinned-to-one-cpu",
        "taskset -apc 0-1 100",
    ),
    "all workers on one CPU": Situation(
        a_service_use(*workers(4, run=0.25, cpus=(0,))),
        "workers-overlap",
        "",
    ),
    "two processes with a pool each": Situation(
        a_service_use(*workers(2, 2, libraries=OPENMP)),
        "processes-with-all-threads",
        "OMP_NUM_THREADS=1",
    ),
    "a pool that spins between requests": Situation(
        a_service_use(
            a_process_use(
                a_thread_use(100, run=0.3, started=900),
                a_thread_use(101, run=1.0),
                libraries=OPENMP,
                variables={"OMP_WAIT_POLICY": "ACTIVE"},
            )
        ),
        "spinning",
        "OMP_WAIT_POLICY=passive",
    ),
    "a runtime that spins by default": Situation(
        a_service_use(
            a_process_use(
                a_thread_use(100, run=0.3, started=900),
                a_thread_use(101, run=1.0),
                libraries=("libomp.so",),
            )
        ),
        "spinning",
        "KMP_BLOCKTIME=0",
    ),
    "siblings, while another core is idle": Situation(
        a_service_use(
            a_process_use(*a_pool(100, 2, run=0.9, cpus=(0, 2))),
            idle={0: 0.1, 1: 1.0, 2: 0.1, 3: 1.0},
        ),
        "smt-siblings-shared",
        "taskset -c 0-1",
        a_host(cpus_per_core=2),
    ),
    "memory on the other node": Situation(
        a_service_use(
            a_process_use(
                *a_pool(100, 2, run=0.9, cpus=(0, 1)), node_bytes={0: 1 << 20, 1: 1 << 30}
            ),
            idle=dict.fromkeys(range(4), 0.5),
        ),
        "memory-remote",
        "",
        a_host(nodes=2),
    ),
    "threads that move between nodes": Situation(
        a_service_use(
            a_process_use(a_thread_use(run=0.9, cpus=(0, 1, 2, 3), visited=(0, 2) * 10)),
            idle=dict.fromkeys(range(4), 0.7),
        ),
        "threads-migrate",
        "",
        a_host(nodes=2),
    ),
    "memory in swap": Situation(
        a_service_use(a_process_use(major_faults=5_000, swap_bytes=1 << 28)), "swapping", ""
    ),
    "files that do not stay in memory": Situation(
        a_service_use(a_process_use(a_thread_use(run=0.02), major_faults=5_000)), "major-faults", ""
    ),
    "huge pages switched off": Situation(
        a_service_use(a_process_use(anonymous_bytes=1 << 30), huge_pages="never"),
        "huge-pages-off",
        "echo always",
    ),
    "huge pages disabled for the process": Situation(
        a_service_use(a_process_use(anonymous_bytes=1 << 30, huge_disabled=True)),
        "huge-pages-off",
        "",
    ),
    "a nice value": Situation(
        a_service_use(a_process_use(a_thread_use(run=0.5, wait=0.5, nice=10)), idle=FULL),
        "low-priority",
        "renice -n 0",
    ),
    "SCHED_IDLE": Situation(
        a_service_use(a_process_use(a_thread_use(run=0.5, wait=0.5, policy=5)), idle=FULL),
        "low-priority",
        "chrt",
    ),
    "a niced session": Situation(
        a_service_use(
            a_process_use(a_thread_use(run=0.5, wait=0.5), autogroup=(7, 10)),
            autogroups=True,
            group="/",
            idle=FULL,
        ),
        "autogroup",
        "echo 0 > /proc/100/autogroup",
    ),
    "a nice value that counts only within its session": Situation(
        a_service_use(
            a_process_use(a_thread_use(run=0.5, wait=0.5, nice=-5), autogroup=(7, 0)),
            autogroups=True,
            group="/",
            idle=FULL,
        ),
        "autogroup",
        "echo -5 > /proc/100/autogroup",
    ),
    "a low weight beside busy neighbours": Situation(
        a_service_use(
            a_process_use(a_thread_use(run=0.3, wait=0.7)),
            weight=CpuWeight(10, "sys/fs/cgroup/app"),
            idle=FULL,
        ),
        "low-cpu-weight",
        "CPUWeight=100",
    ),
    "others on its CPUs": Situation(
        a_service_use(a_process_use(a_thread_use(run=0.5, wait=0.5)), idle=FULL), "foreign-load", ""
    ),
    "a hypervisor that takes its CPUs": Situation(
        a_service_use(cpus={CpuId(cpu): CpuUse(0, DURATION_NS // 2) for cpu in (0, 1)}), "steal", ""
    ),
    "two OpenMP runtimes": Situation(
        a_service_use(a_process_use(*a_pool(100, 2), libraries=("libgomp-a.so.1", "libiomp5.so"))),
        "two-openmp-runtimes",
        "LD_PRELOAD=/usr/lib/libiomp5.so",
    ),
    "a variable that the library does not read": Situation(
        a_service_use(
            a_process_use(
                *a_pool(100, 2),
                libraries=("onnxruntime_pybind11_state.so",),
                variables={"OMP_NUM_THREADS": "1"},
            )
        ),
        "thread-variable-ignored",
        "intra_op_num_threads",
    ),
    "a variable above the number of CPUs": Situation(
        a_service_use(
            a_process_use(
                *a_pool(100, 8, run=0.25, wait=0.75),
                libraries=OPENMP,
                variables={"OMP_NUM_THREADS": "8"},
            )
        ),
        "variable-exceeds-cpus",
        "OMP_NUM_THREADS=2",
    ),
    "a variable above the number of CPUs, and a pool that works in bursts": Situation(
        a_service_use(
            a_process_use(
                a_thread_use(100, run=0.9, started=900),
                *(a_thread_use(tid, run=0.01) for tid in range(101, 116)),
                libraries=OPENMP,
                variables={"OMP_NUM_THREADS": "16"},
            )
        ),
        "variable-exceeds-cpus",
        "OMP_NUM_THREADS=2",
    ),
    "one busy thread, and a pool that idles": Situation(
        a_service_use(
            a_process_use(
                a_thread_use(100, run=1.0, started=900),
                a_thread_use(101, run=0),
                a_thread_use(102, run=0),
                libraries=OPENMP,
            ),
            idle={0: 0.0, 1: 0.95},
        ),
        "one-thread-works",
        "",
    ),
    "one busy thread of a pool": Situation(
        a_service_use(
            a_process_use(
                a_thread_use(100, run=0, started=900),
                a_thread_use(101, run=1.0),
                *(a_thread_use(tid, run=0.001) for tid in range(102, 109)),
            ),
            idle={0: 0.0, 1: 0.6},
        ),
        "one-thread-works",
        "",
    ),
    "Python threads that take turns": Situation(
        a_service_use(a_process_use(*a_pool(100, 50, run=0.02, slices=2_000), command=PYTHON)),
        "interpreter-lock",
        "",
    ),
}


def findings_in(use: ServiceUse, host: Topology = TWO_CPUS) -> dict[str, ServiceFinding]:
    """The findings by rule."""
    return {one.rule: one for one in diagnose_service(ServiceEvidence(use), host)}


@pytest.mark.parametrize("situation", REPORTED)
def test_a_rule_reports_a_service_with_what_to_set(situation: str) -> None:
    use, rule, line, host = REPORTED[situation]

    finding = findings_in(use, host)[rule]

    assert line in finding.line
    assert finding.pids
    assert finding.what
    assert finding.fix


@pytest.mark.parametrize("situation", REPORTED)
def test_what_is_already_set_is_not_named_again(situation: str) -> None:
    use, _, _, host = REPORTED[situation]
    lines = {one.line for one in findings_in(use, host).values() if one.assignments}
    set_now = dict(word.split("=", 1) for line in lines for word in line.split())
    processes = tuple(
        replace(one, variables=one.variables | set_now, command=(*one.command, *lines))
        for one in use.processes
    )

    left = findings_in(replace(use, processes=processes), host)

    assert not lines & {one.line for one in left.values()}


def test_findings_on_crowded_workers_agree_on_what_to_set() -> None:
    variables = {"OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "4"}
    crowded = workers(4, 4, run=0.12, libraries=OPENMP, variables=variables)

    found = findings_in(a_service_use(*crowded))

    assert set(found) >= {"processes-with-all-threads", "variable-exceeds-cpus"}
    assert "more-threads-than-cpus" not in found
    assert {one.line for one in found.values()} == {"OMP_NUM_THREADS=1 MKL_NUM_THREADS=1"}


def test_one_process_with_far_more_threads_is_told_apart_from_its_workers() -> None:
    many = a_process_use(*a_pool(10, 16, run=0.2, wait=0.6), pid=10, libraries=OPENMP)

    assert "more-threads-than-cpus" in findings_in(a_service_use(many, *workers(2, 2)))


def test_a_session_is_not_niced_because_its_processes_are() -> None:
    process = a_process_use(a_thread_use(run=0.5, wait=0.5, nice=10), autogroup=(7, 0))

    found = findings_in(a_service_use(process, autogroups=True, group="/", idle=FULL))

    assert set(found) == {"foreign-load", "low-priority"}


def test_a_line_for_processes_is_for_all_of_them() -> None:
    finding = findings_in(a_service_use(*workers(2, nice=10), idle=FULL))["low-priority"]

    assert finding.pids == (100, 200)
    assert finding.line == "for pid in 100 200; do renice -n 0 -p $(ls /proc/$pid/task); done"
    assert finding.line in finding.fix


def names_of(rule: Callable[..., object]) -> set[str]:
    """The names of the findings that a rule's code can report."""
    named: list[ast.expr] = []
    for call in ast.walk(ast.parse(inspect.getsource(rule))):
        if isinstance(call, ast.Call):
            named += [one.value for one in call.keywords if one.arg == "rule"]
            if isinstance(call.func, ast.Name) and call.func.id == "_finding":
                named.append(call.args[0])
    constants = (one for expression in named for one in ast.walk(expression))
    return {str(one.value) for one in constants if isinstance(one, ast.Constant)}


RULES: tuple[Callable[..., object], ...] = (*SHARED_RULES, *SERVICE_RULES, *PROCESS_RULES)
FINDINGS = set[str]().union(*map(names_of, RULES))


def test_every_finding_that_a_service_can_have_is_specified_here() -> None:
    assert {rule for _, rule, _, _ in REPORTED.values()} == FINDINGS


def test_the_guide_lists_every_finding_with_its_fix() -> None:
    guide = (ROOT / "docs/how-to/inspect.md").read_text("utf-8")

    rows = re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| [^|]+ \|$", guide, re.MULTILINE)

    assert sorted(rows) == sorted(FINDINGS)


HEALTHY = {
    "one thread of a pool for a quota of half a CPU": a_service_use(
        a_process_use(
            a_thread_use(100, run=0.5, wait=0.5),
            *(a_thread_use(tid, run=0) for tid in range(101, 104)),
            libraries=OPENMP,
        ),
        quotas=(a_group_use(0.5, throttled=0.02),),
        idle={0: 0.5, 1: 1.0},
    ),
    "one thread, with one helper that idles": a_service_use(
        a_process_use(a_thread_use(100, run=1.0), a_thread_use(101, run=0), libraries=OPENMP),
        idle={0: 0.0, 1: 1.0},
    ),
    "one thread for each CPU": a_service_use(a_process_use(*a_pool(100, 2, run=0.95))),
    "a single busy thread": a_service_use(a_process_use(a_thread_use(run=0.99))),
    "many threads that hardly work": a_service_use(
        a_process_use(
            a_thread_use(100, run=0.5), *(a_thread_use(i, run=0) for i in range(101, 140))
        )
    ),
    "one worker for each CPU": a_service_use(
        *(a_process_use(a_thread_use(pid, run=0.9), pid=pid) for pid in (100, 101))
    ),
    "a pool as large as its quota": a_service_use(
        a_process_use(a_thread_use(run=0.9)), quotas=(a_group_use(1.0, throttled=0.02),)
    ),
    "each thread bound to a CPU of its own": a_service_use(
        a_process_use(
            a_thread_use(100, run=0.9, cpus=(0,), started=900),
            a_thread_use(101, run=0.9, cpus=(1,)),
        )
    ),
    "passive waiting": a_service_use(
        a_process_use(
            a_thread_use(100, run=0.3, started=900),
            a_thread_use(101, run=0.3),
            libraries=OPENMP,
            variables={"OMP_WAIT_POLICY": "passive"},
        )
    ),
    "a variable of one thread, with a request thread for each CPU": a_service_use(
        a_process_use(
            a_thread_use(100, run=0.1, started=900),
            a_thread_use(101, run=0.8, started=2000),
            a_thread_use(102, run=0.8, started=4000),
            libraries=OPENMP,
            variables={"OMP_NUM_THREADS": "1"},
        )
    ),
    "a session as nice as what is in it asks for": a_service_use(
        a_process_use(a_thread_use(run=0.8, wait=0.21, nice=-5), autogroup=(7, -5)),
        autogroups=True,
        group="/",
    ),
    "a preloaded runtime": a_service_use(
        a_process_use(
            *a_pool(100, 2, run=0.9),
            libraries=("libgomp-a.so.1", "libiomp5.so"),
            variables={"LD_PRELOAD": "/opt/libiomp5.so"},
        )
    ),
    "huge pages on request, and few faults": a_service_use(a_process_use(anonymous_bytes=1 << 30)),
    "no huge pages, but little memory": a_service_use(a_process_use(), huge_pages="never"),
    "a low weight on a quiet host": a_service_use(weight=CpuWeight(10, "sys/fs/cgroup/app")),
    "Python threads with too little work for the lock to matter": a_service_use(
        a_process_use(*a_pool(100, 4, run=0.15), command=PYTHON)
    ),
    "Python threads that release the lock, beside others": a_service_use(
        a_process_use(*a_pool(100, 2, run=0.5, wait=0.1, slices=10_000), command=PYTHON),
        idle={0: 0.5, 1: 0.5},
    ),
    "a Python thread that computes, and others that sleep": a_service_use(
        a_process_use(
            a_thread_use(100, run=1.0, started=900),
            *(a_thread_use(tid, run=0.002) for tid in range(101, 110)),
            command=PYTHON,
        )
    ),
    "an event loop with the helpers of its runtime": a_service_use(
        a_process_use(
            a_thread_use(100, run=1.0, started=900),
            *(a_thread_use(tid, run=0) for tid in range(101, 105)),
            command=("node", "app.js"),
        )
    ),
    "a runtime that started its helpers with the one thread of the program": a_service_use(
        a_process_use(
            a_thread_use(100, run=0, started=900),
            a_thread_use(101, run=1.0, name="main"),
            *(a_thread_use(tid, run=0, name=f"GC Thread#{tid}") for tid in range(102, 106)),
            libraries=("libjvm.so",),
            command=("java", "App"),
        )
    ),
    "a pool with a slow thread": a_service_use(
        a_process_use(*a_pool(100, 7, run=0.05), a_thread_use(107, run=0.95), libraries=OPENMP)
    ),
    "workers with a thread, and a helper that waits as long": a_service_use(
        *(
            a_process_use(
                a_thread_use(pid, run=0.48, wait=0.5),
                a_thread_use(pid + 1, run=0.006, wait=0.4),
                pid=pid,
                libraries=OPENMP,
            )
            for pid in (100, 200, 300, 400)
        )
    ),
    "workers with a thread, and a frontend with two": a_service_use(
        a_process_use(*a_pool(10, 2, run=0.2, wait=0.2), pid=10),
        *workers(2, run=0.3),
    ),
    "a pool that computes and may not spin": a_service_use(
        a_process_use(
            a_thread_use(100, run=0.3, started=900),
            *(a_thread_use(tid, run=0.92) for tid in (101, 102)),
            libraries=("libomp.so",),
            variables={"KMP_BLOCKTIME": "0"},
        )
    ),
    "faults while it reads its libraries": a_service_use(a_process_use(major_faults=200)),
}


@pytest.mark.parametrize("situation", HEALTHY)
def test_a_healthy_service_has_no_finding(situation: str) -> None:
    assert not findings_in(HEALTHY[situation])


def test_nothing_is_said_of_an_idle_service_however_it_was_started() -> None:
    threads = a_pool(100, 8, run=0.001, cpus=(0,), nice=10)
    idle = a_service_use(a_process_use(*threads, variables={"OMP_NUM_THREADS": "8"}))

    assert ServiceEvidence(idle).is_idle
    assert not findings_in(idle)


def test_threads_that_only_wake_up_are_idle_however_long_they_wait_for_a_busy_host() -> None:
    threads = [a_thread_use(tid, run=0.001, wait=0.9, slices=10_000) for tid in range(100, 150)]
    use = a_service_use(a_process_use(*threads), idle=FULL)

    assert not set(findings_in(use)) - {"foreign-load"}


def test_a_pool_with_short_parallel_regions_computes() -> None:
    threads = a_pool(100, 17, run=0.03, wait=0.9, slices=15_000)

    found = findings_in(a_service_use(a_process_use(*threads, libraries=OPENMP), idle=FULL))

    assert "more-threads-than-cpus" in found


@pytest.mark.parametrize(
    "share",
    # Three request threads; two threads of a pool, and the one that hands them their work.
    [0.2, 0.336],
)
def test_threads_that_fit_but_wait_for_others_are_not_too_many(share: float) -> None:
    # They are ready for 1.2 or 2.02 CPUs in all; another program uses the rest.
    threads = [
        a_thread_use(tid, run=share, wait=share, started=tid * 100) for tid in (100, 101, 102)
    ]

    found = findings_in(a_service_use(a_process_use(*threads), idle=FULL))

    assert set(found) == {"foreign-load"}


@pytest.mark.parametrize(
    ("libraries", "command", "variables", "line"),
    [
        (OPENMP, ("app",), {}, "OMP_NUM_THREADS=1"),
        (OPENMP, ("app",), {"MKL_NUM_THREADS": "8"}, "MKL_NUM_THREADS=1"),
        (OPENMP, ("app",), {"OMP_NUM_THREADS": "1"}, ""),
        (OPENMP, ("llama-server", "-t", "8"), {}, "-t 1"),
        (OPENMP, ("server", "--threads=8"), {}, "--threads 1"),
        # These take requests: the pool is larger.
        (OPENMP, ("gunicorn", "--threads", "4"), {}, "OMP_NUM_THREADS=1"),
        (("onnxruntime_pybind11_state.so",), ("app",), {}, "intra_op_num_threads=1"),
        (("lib_lightgbm.so", *OPENMP), ("app",), {}, "num_threads=1"),
        (("_polars_runtime.abi3.so",), PYTHON, {}, "POLARS_MAX_THREADS=1"),
        (("Go runtime",), ("server",), {}, "GOMAXPROCS=1"),
        (("_duckdb.so",), PYTHON, {}, "SET threads TO 1"),
        (OPENMP, ("python", "-m", "joblib.x"), {"OMP_NUM_THREADS": "2"}, "max_num_threads=1"),
        ((), ("app",), {}, ""),
    ],
)
def test_what_to_set_depends_on_the_program_and_on_the_quota(
    libraries: tuple[str, ...], command: tuple[str, ...], variables: dict[str, str], line: str
) -> None:
    process = a_process_use(
        *a_pool(100, 8, run=0.25, wait=0.75),
        libraries=libraries,
        command=command,
        variables=variables,
    )
    # The quota allows one of the two CPUs, and a busy host keeps it from throttling.
    use = a_service_use(process, quotas=(a_group_use(1.0),), idle=FULL)

    finding = findings_in(use)["more-threads-than-cpus"]

    assert finding.line.endswith(line)
    assert bool(finding.line) == bool(line)
    assert "1" in finding.what


@pytest.mark.parametrize(
    ("run", "line"),
    [(0.25, "OMP_NUM_THREADS=2"), (0.1, "OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive")],
)
def test_a_pool_beside_other_programs_should_fit_and_not_spin(run: float, line: str) -> None:
    process = a_process_use(*a_pool(100, 8, run=run, wait=1 - run), libraries=OPENMP)

    finding = findings_in(a_service_use(process, idle=FULL))["more-threads-than-cpus"]

    assert finding.line == line
    assert finding.assignments["OMP_NUM_THREADS"] == "2"


def test_pools_that_do_not_fit_together_are_too_many_even_beside_others() -> None:
    found = findings_in(a_service_use(*workers(3, 2, run=0.25), idle=FULL))

    assert set(found) == {"processes-with-all-threads", "foreign-load"}


def test_a_parent_that_only_waits_for_its_workers_is_no_worker() -> None:
    parent = a_process_use(a_thread_use(1, run=0.01, wait=0.4, slices=10), pid=1)
    service = a_service_use(parent, *workers(3, 2, run=0.25))

    finding = findings_in(service)["processes-with-all-threads"]

    assert finding.pids == (100, 200, 300)


def test_python_threads_that_share_the_lock_are_no_pool() -> None:
    threads = a_pool(100, 5, run=0.1, wait=0.4)
    use = a_service_use(a_process_use(*threads, command=PYTHON), idle=FULL)

    assert set(findings_in(use)) == {"foreign-load"}
