"""Records of many stub hosts, and what it costs to merge, compare and report them.

`python -m benchmarks.fleet` writes the records of generated hosts into a temporary folder and
prints time and peak memory of `corebound compare --by class`, `regressions` and `report`. Hosts,
nightly runs and cells are options; the full size is `--hosts 1000 --nights 365 --cells 20`.

The launches of so many runs take 65 GB. With `--indexed` only the last night has launches; the
index of runs, with every point, is written as if the other nights had been read one by one.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.hardware import hardware_class
from corebound.machine.identity import Host
from corebound.machine.topology import CoreKey, Cpu, CpuId, Node, NodeId, Topology
from corebound.planning.models import Command, Placement, Slot
from corebound.records import codec, jsonl
from corebound.records.history import EnvironmentKey, HistoryPoints, Moment, Series
from corebound.records.launch_record import Launch, Worker
from corebound.records.run_record import SCHEMA, Commit, Run, ScenarioSource
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import expand
from corebound.scenario.models import Scenario
from corebound.stats.history.series import series_of_run
from corebound.workflow.run_index import RunSummary, folder_index, keep_index

_BEGAN = datetime(2025, 11, 1, 2, tzinfo=UTC)
_BLOCKS = 6
# Standard deviations, of logarithms: between hosts of a class, and between launches.
_BETWEEN, _LAUNCHES = 0.02, 0.01
_BASE_NS = 10_000_000


class StubClass(Struct, frozen=True, kw_only=True):
    """A kind of host: its name, sockets, cores of each socket, and its gain from each setting."""

    name: str
    model: str
    sockets: int
    cores: int
    gain: float


CLASSES = (
    StubClass(name="xeon-2s", model="Intel(R) Xeon(R) Gold 6348 CPU @ 2.60GHz", sockets=2,
              cores=28, gain=1.5),
    StubClass(name="epyc-2s", model="AMD EPYC 7713 64-Core Processor", sockets=2, cores=64,
              gain=1.5),
    StubClass(name="epyc-1s", model="AMD EPYC 7543P 32-Core Processor", sockets=1, cores=32,
              gain=1.5),
    StubClass(name="arm-1s", model="Neoverse-N1", sockets=1, cores=80, gain=1.5),
)  # fmt: skip


class StubFleet(Struct, frozen=True, kw_only=True):
    """A generated fleet.

    Attributes:
        hosts, nights, cells: How many there are; a class has every len(CLASSES)-th host.
        seed: Of the random numbers.
        slow_host: The host whose gain is lost, with an older kernel; None: no outlier.
        gains: Classes with a gain of their own, by name.
        regression: (night, factor): from this night on, the last cell takes so many times as long
            on three hosts of four; None: no regression.
        small: Whether topologies have two cores a socket, so that records are small.
    """

    hosts: int
    nights: int
    cells: int
    seed: int = 1
    slow_host: int | None = None
    gains: dict[str, float] = {}
    regression: tuple[int, float] | None = None
    small: bool = True


def scenario_of(cells: int) -> Scenario:
    """A scenario with so many cells, the first of which is the baseline."""
    return Scenario.model_validate(
        {
            "schema": 1,
            "name": "fleet-stub",
            "title": "A stub of a workload",
            "question": "Which setting is fastest on which class of hosts?",
            "workload": {"command": ["true"]},
            "matrix": {"parameters": {"setting": list(range(cells))}},
            "baseline": {"parameters": {"setting": 0}},
            "measure": {"launches": {"min": _BLOCKS, "max": _BLOCKS}, "iterations": 2},
        }
    )


def write_fleet(fleet: StubFleet, records: Path) -> None:
    """Write the records of all hosts below a folder, one host after another."""
    scenario = scenario_of(fleet.cells)
    cells = [*expand(scenario, "stub.yaml")]
    source = ScenarioSource(path="stub.yaml", sha256="0" * 64, document=scenario.document())
    for number in range(fleet.hosts):
        host, kind = stub_host(number, fleet)
        rng = np.random.default_rng([fleet.seed, number])
        gain = math.log(fleet.gains.get(kind.name, kind.gain))
        if number == fleet.slow_host:
            gain = -gain
        levels = rng.normal(0, _BETWEEN, len(cells)) + math.log(_BASE_NS)
        levels[1:] -= gain
        for night in range(fleet.nights):
            logs = levels.copy()
            if fleet.regression and night >= fleet.regression[0] and number % 4:
                logs[-1] += math.log(fleet.regression[1])
            run = _run(host, kind, night, source)
            file = jsonl.file_of(run, records)
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb") as stream:
                stream.write(codec.encode(run))
                for launch in _launches(run, cells, logs, rng):
                    stream.write(codec.encode(launch))


def write_indexed_fleet(fleet: StubFleet, records: Path) -> None:
    """Write the same fleet as its index, with the launches of the last night only."""
    scenario = scenario_of(fleet.cells)
    cells = [*expand(scenario, "stub.yaml")]
    source = ScenarioSource(path="stub.yaml", sha256="0" * 64, document=scenario.document())
    example: tuple[Series, ...] = ()
    moments: list[Moment] = []
    for number in range(fleet.hosts):
        host, kind = stub_host(number, fleet)
        rng = np.random.default_rng([fleet.seed, number])
        levels = rng.normal(0, _BETWEEN, len(cells)) + math.log(_BASE_NS)
        logs = levels + rng.normal(0, _LAUNCHES, (_BLOCKS, fleet.nights, len(cells)))
        if fleet.regression and number % 4:
            logs[:, fleet.regression[0] :, -1] += math.log(fleet.regression[1])
        runs: dict[str, RunSummary] = {}
        moments = []
        for night in range(fleet.nights):
            run = _run(host, kind, night, source)
            file = jsonl.file_of(run, records)
            file.parent.mkdir(parents=True, exist_ok=True)
            lines = [codec.encode(run)]
            if night == fleet.nights - 1:
                launches = [*_launches(run, cells, logs[0, night], rng)]
                lines += map(codec.encode, launches)
                example = example or series_of_run(run, launches)
            file.write_bytes(b"".join(lines))
            runs[file.name] = _summary_of(run, jsonl.stamp(file))
            moments.append(Moment(run.started_at, run.id, run.commit))
        series = [
            replace(
                each,
                host=host.id,
                host_name=host.name,
                points=_points(moments, logs[:, :, at], each.points.environment_keys[0]),
            )
            for at, each in enumerate(example)
        ]
        keep_index(folder_index(runs, series), file.parent)


def _summary_of(run: Run, stamp: str) -> RunSummary:
    return RunSummary(
        stamp=stamp, id=run.id, host=run.host.id, started_at=run.started_at,
        hardware=hardware_class(run).name, scenarios=("fleet-stub",), is_whole=True, unreadable=(),
        faults=(), delays={},
    )  # fmt: skip


def _points(moments: Sequence[Moment], logs: np.ndarray, key: EnvironmentKey) -> HistoryPoints:
    """The points of one cell, from its (launches, nights) logarithms."""
    times_ns = np.exp(logs)
    return HistoryPoints(
        moments=moments,
        values=array("d", np.median(times_ns, axis=0)),
        lows=array("d", times_ns.min(axis=0)),
        highs=array("d", times_ns.max(axis=0)),
        environment_keys=(key,) * len(moments),
        launches=[tuple(night) for night in times_ns.T.tolist()],
    )


def stub_host(number: int, fleet: StubFleet) -> tuple[Host, StubClass]:
    """The host of this number, and its class."""
    kind = CLASSES[number % len(CLASSES)]
    cores = 2 if fleet.small else kind.cores
    cpus = [
        Cpu(
            id=CpuId(socket * cores + core),
            core=CoreKey(package=socket, die=0, core=core),
            node=NodeId(socket),
            cache=None,
            kind=None,
            allowed=True,
        )
        for socket in range(kind.sockets)
        for core in range(cores)
    ]
    nodes = tuple(
        Node(
            id=NodeId(socket),
            cpus=tuple(cpu.id for cpu in cpus if cpu.node == socket),
            memory_bytes=256 << 30,
            distances=tuple(
                (NodeId(other), 10 if other == socket else 21) for other in range(kind.sockets)
            ),
            allowed=True,
        )
        for socket in range(kind.sockets)
    )
    host = Host(
        id=f"{number:012x}",
        name=f"{kind.name}-{number:04}",
        cpu_model=kind.model,
        kernel="Linux 6.1.0" if number == fleet.slow_host else "Linux 6.8.0",
        os="Debian GNU/Linux 12",
        memory_bytes=kind.sockets * (256 << 30),
        topology=Topology(cpus=tuple(cpus), offline=(), nodes=nodes, caches=()),
        gpus=(),
        microcode="0x2b000603",
        governors=("performance",),
    )
    return host, kind


def _run(host: Host, kind: StubClass, night: int, source: ScenarioSource) -> Run:
    started = _BEGAN + timedelta(days=night)
    commit = Commit(
        sha=f"{night:040x}",
        subject=f"change {night}",
        committed_at=(started - timedelta(hours=6)).isoformat(),
        dirty=False,
    )
    return Run(
        schema=SCHEMA,
        id=f"{host.id}-{night:04}",
        started_at=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        corebound="0.1.0",
        argv=("corebound", "run", "stub.yaml"),
        seed=night,
        profile=None,
        only=(),
        host=host,
        commit=commit,
        scenarios=(source,),
        environments=(),
        labels={"class": kind.name},
    )


def _launches(
    run: Run, cells: Sequence[Cell], logs: np.ndarray, rng: np.random.Generator
) -> Iterator[Launch]:
    times_ns = np.exp(logs + rng.normal(0, _LAUNCHES, (_BLOCKS, len(cells))))
    cpus = tuple(cpu.id for cpu in run.host.topology.cpus)
    placement = Placement(
        slots=(Slot(cpus=cpus),), threads=None, backend="none", memory="default",
        moment="before-start", bound=False,
    )  # fmt: skip
    for block in range(_BLOCKS):
        for position, cell in enumerate(cells):
            wall_ns = (round(times_ns[block, position]),) * 2
            worker = Worker(
                slot=0, wall_ns=wall_ns, cpu_ns=wall_ns, phases={}, threads_asked=None,
                threads_used=None, inter_op_used=None, python="3.11.2", versions={}, blas=None,
                environment={}, threads=(), peak_rss_bytes=64 << 20,
            )  # fmt: skip
            yield Launch(
                id=f"{run.id}-{block}-{position}",
                run=run.id,
                block=block,
                position=position,
                cell=cell,
                status="ok",
                reason=None,
                fix=None,
                evidence=(),
                placement=placement,
                commands=(Command(argv=("true",), env=()),),
                started_at=run.started_at,
                duration_ns=1_000_000_000,
                overhead_ns=10_000_000,
                looks=10,
                look_ns=500_000,
                workers=(worker,),
                leftover_processes=(),
                log="",
            )


def _measure(arguments: Sequence[str], folder: Path) -> tuple[float, float, float]:
    """Seconds, CPU seconds and MiB of peak memory of a corebound command."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "corebound", *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"corebound {' '.join(arguments)} failed")
    # ru_maxrss counts KiB on Linux.
    cpu_s = usage.ru_utime + usage.ru_stime
    return time.monotonic() - began, cpu_s, usage.ru_maxrss / 1024


def main() -> None:
    """Generate the fleet, run the commands, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--nights", type=int, default=30)
    parser.add_argument("--cells", type=int, default=5)
    parser.add_argument("--only", action="append", choices=("compare", "regressions", "report"))
    parser.add_argument("--indexed", action="store_true", help="launches of the last night only")
    options = parser.parse_args()
    fleet = StubFleet(
        hosts=options.hosts,
        nights=options.nights,
        cells=options.cells,
        slow_host=4,
        regression=(options.nights * 2 // 3, 1.1),
    )
    commands = {
        "compare": ("compare", "--by", "class"),
        "regressions": ("regressions",),
        "report": ("report",),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.monotonic()
        write = write_indexed_fleet if options.indexed else write_fleet
        write(fleet, folder / "reports/records")
        size = sum(file.stat().st_size for file in (folder / "reports/records").rglob("*.jsonl"))
        print(f"{fleet.hosts} hosts, {fleet.nights} nights, {fleet.cells} cells: "
              f"{size / 2**20:.0f} MiB written in {time.monotonic() - began:.0f} s")  # fmt: skip
        for command in options.only or commands:
            for state in ("first", "again"):
                wall_s, cpu_s, peak_mib = _measure(commands[command], folder)
                print(f"{command:12} {state:6} {wall_s:7.1f} s {cpu_s:7.1f} CPU s "
                      f"{peak_mib:7.0f} MiB", flush=True)  # fmt: skip
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"generator: {own:.0f} MiB")


if __name__ == "__main__":
    main()
