"""Services on an emulated machine of two sockets with SMT and cgroup v2.

CPUs 0-3 are node 0, with the cores (0,1) and (2,3); CPUs 4-7 are node 1. `make numa-machine`
builds it. Its timings mean nothing; where threads and memory are, and what a quota does, is real.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from benchmarks.inspect_services.inspector import Observation
from benchmarks.inspect_services.service import PROGRAMS, ROOT

_EMULATOR = ROOT / "tests" / "numa" / "numa-vm"
_LIMIT_S = 900
# Emulated CPUs are threads of a smaller host.
_ALSO = ("foreign-load", "steal")


class Guest(Struct, frozen=True, kw_only=True):
    """A service in the machine: a line of shell, with `exec`, and what is right to find."""

    name: str
    start: str
    expects: tuple[str, ...] = ()


_POOL = "exec {} /out/pool {} {} /out"
_TABLE = "exec {} python3.11 /programs/steps.py hashed-table --counts /out"
# The program that moves it is no child of it.
_MOVE = (
    "(while taskset -apc 0-3 $$ && sleep 0.3 && taskset -apc 4-7 $$; do sleep 0.3; done"
    " > /dev/null 2>&1 &); exec /out/pool wait 2 /out"
)
_GROUP = "mkdir -p /sys/fs/cgroup/{0}; echo {1} > /sys/fs/cgroup/{0}/{2}; "
_JOIN = "echo $$ > /sys/fs/cgroup/{}/cgroup.procs; "

GUESTS = (
    Guest(
        name="two threads on SMT siblings",
        start=_POOL.format("taskset -c 0,1", "wait", 2),
        expects=("smt-siblings-shared",),
    ),
    Guest(
        name="memory on a remote node",
        start=_TABLE.format("numactl --cpunodebind=0 --membind=1"),
        expects=("memory-remote",),
    ),
    Guest(
        name="threads that move between nodes",
        start=_MOVE,
        expects=("threads-migrate",),
    ),
    Guest(
        name="4 threads, quota 1 of cgroup v2",
        start=_GROUP.format("own", "'100000 100000'", "cpu.max")
        + _JOIN.format("own")
        + _POOL.format("", "spin", 4),
        expects=("more-threads-than-quota",),
    ),
    Guest(
        name="2 threads, quota 0.5 of a parent in cgroup v2",
        start=_GROUP.format("outer", "'50000 100000'", "cpu.max")
        + "mkdir -p /sys/fs/cgroup/outer/inner; "
        + _JOIN.format("outer/inner")
        + _POOL.format("", "spin", 2),
        expects=("throttled-by-parent",),
    ),
    Guest(name="two threads on two cores", start=_POOL.format("taskset -c 0,2", "wait", 2)),
    Guest(
        name="memory on the same node",
        start=_TABLE.format("numactl --cpunodebind=0 --membind=0"),
    ),
    Guest(name="two threads, unbound", start=_POOL.format("", "wait", 2)),
    Guest(name="a sleeping program", start="exec sleep 1000"),
)


def observations(corebound: Path, *, seconds: float) -> Iterator[Observation]:
    """Start each service in the machine, inspect it with this command's package, and end it."""
    with tempfile.TemporaryDirectory(prefix="inspect-guests-") as name:
        out = Path(name)
        program, source = str(out / "pool"), str(PROGRAMS / "pool.c")
        build = ("gcc", "-O2", "-static", "-pthread", "-o", program, source)
        subprocess.run(build, check=True)
        inspect = f"python3.11 -m corebound inspect $pid --seconds {seconds:g} --json"
        script = ["echo +cpu > /sys/fs/cgroup/cgroup.subtree_control"]
        for number, guest in enumerate(GUESTS):
            script += (
                f"sh -c {shlex.quote(guest.start)} & pid=$!",
                "sleep 3",
                f"{inspect} > /out/{number}.json 2> /out/{number}.errors",
                f"echo $? > /out/{number}.code",
                "kill -9 $pid",
                "wait $pid",
            )
        packages = next(corebound.parents[1].glob("lib/python*/site-packages"))
        shared: tuple[str, ...] = (f"{corebound.parents[2] / 'src'}:/src", f"{packages}:/site")
        shared += (f"{PROGRAMS}:/programs", f"{out}:/out:rw")
        command = [str(_EMULATOR), "run", "--mem", "1024", "--timeout", str(_LIMIT_S)]
        for share in shared:
            command += ("--share", share)
        command += ("--env", "PYTHONPATH=/src:/site", "--env", "HOME=/tmp")
        done = subprocess.run(
            [*command, "--", "sh", "-c", "\n".join(script)],
            capture_output=True,
            text=True,
            check=False,
        )
        for number, guest in enumerate(GUESTS):
            yield _observation(guest, out, number, done.stdout + done.stderr)


def _observation(guest: Guest, out: Path, number: int, log: str) -> Observation:
    answer = out / f"{number}.json"
    variant = "planted" if guest.expects else "quiet"
    try:
        document = json.loads(answer.read_text("utf-8"))
        rules = tuple(finding["rule"] for finding in document["findings"])
        problem = None
    except (OSError, ValueError, KeyError, TypeError):
        errors = out / f"{number}.errors"
        problem = errors.read_text("utf-8")[-400:] if errors.exists() else log[-400:]
        document, rules = {}, ()
    return Observation(
        name=f"{guest.name} (emulated)",
        variant=variant,
        expects=guest.expects,
        also=_ALSO,
        rules=rules,
        problem=problem,
        document=document,
    )
