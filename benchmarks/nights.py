"""Real nights on machines that change: anchored beside absolute histories of the same nights.

A repository with a commit for each night is measured by `corebound nightly --anchor`. Three
machines come in an order drawn by a seed: this host under two ids, and this host with one CPU
and another name of its CPU model. In some nights the machine has a noisy neighbour, in some there
is none. One part of the program becomes slower everywhere, one on the other model alone, and the
rest stays as it is. Run on a quiet machine, as root, from the root of the repository:

    python -m benchmarks.nights [--nights 24] [--seed 1] [--folder DIR] [--json]

With `--folder`, the repository and its records are kept, and an interrupted study resumes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import repositories  # test code, which is not a package

PARTS = ("everywhere", "one-model", "same-1", "same-2")
EVERYWHERE, ONE_MODEL = 1.03, 1.05
NEIGHBOUR, OUTAGE = 0.15, 0.05
OTHER_MODEL = "AMD EPYC 7763 64-Core Processor"

SCENARIO = f"""\
schema: 1
name: parts
title: The parts of a program
question: What does a night's commit cost?
workload: parts_steps:setup
environment: project
binding: one-cpu
matrix: {{parameters: {{part: [{", ".join(PARTS)}]}}}}
measure: {{iterations: 100, launches: {{min: 10, max: 10}}}}
"""
STEPS = "from program import part_of\n\n\ndef setup(*, part):\n    return part_of(part)\n"
# The other model's code path is chosen as programs choose theirs: by what the CPU says it is.
PROGRAM = '''\
"""Revision {revision}."""

WORK = {work}
IS_OTHER = "EPYC" in open("/proc/cpuinfo").read()


def part_of(part):
    work = round(40_000 * WORK.get(part, 1) * (IS_OTHER or part != "one-model" or 1 / WORK[part]))

    def step():
        value = 0
        for number in range(work):
            value += number & 7
        return value

    return step
'''


class Machine(Struct, frozen=True, kw_only=True):
    """What comes in a night: its id, and whether it is of the other model."""

    id: str
    is_other: bool

    def command(self, cpuinfo: Path) -> tuple[str, ...]:
        """What starts a command on it."""
        if not self.is_other:
            return ()
        mount = f"mount --bind {cpuinfo} /proc/cpuinfo"
        return ("unshare", "--mount", "sh", "-c", f'{mount} && exec taskset -c 0 "$@"', "sh")


MACHINES = (
    Machine(id="whole-1", is_other=False),
    Machine(id="whole-2", is_other=False),
    Machine(id="one-cpu", is_other=True),
)


class Night(Struct, frozen=True, kw_only=True):
    """What a night told: for each part, the changes of its anchored and absolute histories."""

    number: int
    machine: str
    neighbour: bool
    seconds: float
    told: dict[str, list[dict[str, Any]]]


def main() -> int:
    """Make the nights; print a line for each, then what was told and when."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nights", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keep the repository in this folder")
    parser.add_argument("--json", action="store_true", help="print every night as JSON")
    options = parser.parse_args()
    change = options.nights * 2 // 3
    nights = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch) / "program"
        if not (folder / ".git").is_dir():
            make_repository(folder, options.nights, change)
        for night in make_nights(folder, options.seed):
            nights.append(night)
            if not options.json:
                print(line_of(night), flush=True)
    if options.json:
        print(
            json.dumps([{name: getattr(n, name) for name in n.__struct_fields__} for n in nights])
        )
    else:
        print(*summary(nights, change), sep="\n")
    return 0


def make_repository(folder: Path, nights: int, change: int) -> None:
    """A repository with the anchor and a commit for each night."""
    (folder / "program").mkdir(parents=True)
    (folder / "scenarios").mkdir()
    repositories.write_pyproject(folder, "program", packages=["program"])
    repositories.write_asv_conf(folder, "program")
    (folder / "setup.py").write_text(repositories.SETUP)
    (folder / "scenarios" / "parts.yaml").write_text(SCENARIO)
    (folder / "scenarios" / "parts_steps.py").write_text(STEPS)
    for revision in range(nights + 1):
        work = {"everywhere": EVERYWHERE, "one-model": ONE_MODEL} if revision > change else {}
        program = PROGRAM.format(revision=revision, work=work or {"one-model": 1})
        (folder / "program" / "__init__.py").write_text(program)
        if revision:
            repositories.git(folder, "commit", "--quiet", "--all", "--message", f"night {revision}")
        else:
            repositories.commit_all(folder, "anchor", ignored=("/public/", "/.asv/", "*.pyc"))


def make_nights(folder: Path, seed: int) -> Iterator[Night]:
    """Each night on the machine that the seed draws; those of an earlier call are read."""
    draw = np.random.default_rng(seed)
    cpuinfo = folder.with_name("cpuinfo")
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpuinfo.write_text(
        "".join(
            f"{f'model name : {OTHER_MODEL}' if 'model name' in line else line}\n" for line in lines
        )
    )
    anchor, *commits = repositories.git(folder, "rev-list", "--reverse", "main").split()
    for number, commit in enumerate(commits):
        machine, chance = MACHINES[draw.integers(len(MACHINES))], draw.random()
        kept = folder / ".git" / f"night-{number}.json"
        if chance > 1 - OUTAGE:
            continue
        if not kept.is_file():
            repositories.git(folder, "checkout", "--quiet", commit)
            kept.write_text(
                json.dumps(_told(folder, machine, anchor, cpuinfo, neighbour=chance < NEIGHBOUR))
            )
        yield Night(
            number=number,
            machine=machine.id,
            neighbour=chance < NEIGHBOUR,
            **json.loads(kept.read_text()),
        )


def _told(
    folder: Path, machine: Machine, anchor: str, cpuinfo: Path, *, neighbour: bool
) -> dict[str, Any]:
    """Make one night, and ask for the changes of all histories after it."""
    words = ("nightly", "scenarios", "--anchor", anchor, "--to", "public")
    environment = {**os.environ, "COREBOUND_MACHINE_ID": machine.id}
    corebound = (*machine.command(cpuinfo), sys.executable, "-m", "corebound")
    start = time.perf_counter()
    busy = subprocess.Popen((sys.executable, "-c", "while True: pass")) if neighbour else None
    try:
        subprocess.run(
            (*corebound, *words, "--quiet"),
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            check=False,
        )
    finally:
        if busy is not None:
            busy.kill()
            busy.wait()
    seconds = time.perf_counter() - start
    asked = subprocess.run(
        (*corebound, "regressions", "--json", "--all"),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        check=False,
    )
    told: dict[str, list[dict[str, Any]]] = {"anchored": [], "absolute": []}
    for change in json.loads(asked.stdout)["changes"]:
        kind = "anchored" if "anchor" in change else "absolute"
        names = ("alarm", "regression", "ratio", "interval", "only_on", "host", "step")
        told[kind].append(
            {"part": change["axes"]["part"], **{name: change[name] for name in names}}
        )
    return {"seconds": round(seconds, 1), "told": told}


def line_of(night: Night) -> str:
    """A night: what came, how long it took, and what is told at its end."""
    told = ", ".join(
        f"{change['part']} {change['ratio']:.3f}{' ' + kind if kind == 'absolute' else ''}"
        for kind, changes in night.told.items()
        for change in changes
    )
    neighbour = ", a noisy neighbour" if night.neighbour else ""
    return (
        f"{night.number:3} {night.machine}{neighbour}, {night.seconds:.0f} s: {told or 'nothing'}"
    )


def summary(nights: list[Night], change: int) -> Iterator[str]:
    """For each kind of history: when the planted changes were told, and false alarms."""
    for kind in ("anchored", "absolute"):
        for part in PARTS:
            on_model = MACHINES[-1].id if part == "one-model" else ""
            after = [n for n in nights if n.number >= change and on_model in ("", n.machine)]
            alarms = [n for n in nights if any(
                each["part"] == part and each["alarm"] for each in n.told[kind]
            )]  # fmt: skip
            early = [night for night in alarms if night.number < change or part.startswith("same")]
            late = [place for place, night in enumerate(after, 1) if night in alarms]
            found = f"told after {late[0]} of its nights" if late else "not told"
            result = "" if part.startswith("same") else f"{found}, "
            yield f"{kind} {part}: {result}{len(early)} nights with a false alarm"


if __name__ == "__main__":
    sys.exit(main())
