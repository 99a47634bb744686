"""Fleets for tests: a plan, records of its shards, and an engine that loses agents."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from corebound.fleet.engines import JobState
from corebound.fleet.file import HostEntry
from corebound.fleet.folder import PlanFolder, RecordFile, ShardReport, create
from corebound.fleet.plan import (
    Assignment,
    Plan,
    PlannedHost,
    PlannedScenario,
    Shard,
    Source,
    freeze,
)
from corebound.records import codec
from corebound.records.run_record import Commit, Run, ScenarioSource
from support.build import a_launch, a_machine, a_run, a_scenario

SHA = "c" * 40


def a_plan(
    *, hosts: Sequence[str | PlannedHost] = ("n1", "n2"), round_name: str = "1", **changes: Any
) -> Plan:
    """A plan of one scenario on some hosts of a Dask scheduler."""
    document = {
        "schema": 1,
        "name": "lab",
        "engine": "dask",
        "hosts": ["n1"],
        "scenarios": ["scenarios/a.yaml"],
        "dask": {"scheduler": "tcp://h:8786"},
    }
    inputs: dict[str, Any] = {
        "document": document,
        "round_name": round_name,
        "created_at": "2026-01-02T03:04:05Z",
        "corebound": "0.1.0",
        "commit": Commit(sha=SHA, subject="", committed_at="2026-01-01T00:00:00Z", dirty=False),
        "source": Source(folder="", sha256="d" * 64, size_bytes=1),
        "scenarios": [scenario_named("a")],
        "hosts": [
            host if isinstance(host, PlannedHost) else PlannedHost(name=host, labels={})
            for host in hosts
        ],
        **changes,
    }
    return freeze(**inputs)


def scenario_named(name: str) -> PlannedScenario:
    """A planned scenario that needs no environment of its own."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return PlannedScenario(
        name=name, path=f"scenarios/{name}.yaml", sha256=digest, environments={"host": ""}
    )


def a_plan_folder(folder: Path, plan: Plan | None = None) -> PlanFolder:
    """A plan on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    bundle = folder / "bundle"
    bundle.write_bytes(b"x")
    return create(folder / "lab", plan or a_plan(), bundle)


def shard_run(plan: Plan, shard: Shard, *, machine: str | None = None, **changes: Any) -> Run:
    """The run that the agent of a shard has recorded."""
    scenario = plan.scenario_of(shard)
    document = a_scenario(name=scenario.name).document()
    source = ScenarioSource(path=scenario.path, sha256=scenario.sha256, document=document)
    run = a_run(run_id=shard.id, host=a_machine(name=machine or shard.host), commit=plan.commit)
    labels = {"fleet-plan": plan.id, "fleet-shard": shard.id}
    return replace(run, scenarios=(source,), **{"labels": labels, **changes})


def record_bytes(run: Run, launches: int = 2) -> bytes:
    """A file of records with so many launches."""
    lines = [codec.encode(a_launch(block=block)) for block in range(launches)]
    return codec.encode(run) + b"".join(lines)


def record_file(path: str, data: bytes) -> RecordFile:
    """What an agent says of a file."""
    return RecordFile(path=path, sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))


def done(shard: Shard, *files: RecordFile, ended_at: str = "2026-01-02T03:05:00Z") -> ShardReport:
    """The report of an agent that has carried out a shard."""
    return ShardReport(
        shard=shard.id, host=shard.host, state="done", records=files, ended_at=ended_at
    )


class FakeEngine:
    """An engine whose answers a test decides: `answer` is asked for each job, at each poll."""

    def __init__(
        self, answer: Callable[[Assignment], JobState], *, keeps_jobs: bool = False
    ) -> None:
        self._answer = answer
        self.outlives_us = keeps_jobs
        self.one_at_a_time = not keeps_jobs
        self.delivered: list[Assignment] = []
        self.again: list[bool] = []
        self.cancelled: list[str] = []
        self.gone: dict[str, str] = {}

    def select(self, entry: HostEntry) -> Sequence[str]:
        return [entry.name or "n1"]

    def absent(self, hosts: Sequence[str]) -> Mapping[str, str]:
        return {host: self.gone[host] for host in hosts if host in self.gone}

    def submit(
        self, assignments: Sequence[Assignment], *, again: bool
    ) -> Iterator[tuple[str, str]]:
        self.again.append(again)
        for task in assignments:
            self.delivered.append(task)
            yield task.shard, f"job-{len(self.delivered)}"

    def poll(self, jobs: Mapping[str, tuple[Assignment, str]]) -> Mapping[str, JobState]:
        return {shard: self._answer(task) for shard, (task, _) in jobs.items()}

    def cancel(self, jobs: Mapping[str, tuple[Assignment, str]]) -> None:
        self.cancelled += jobs

    def read(self, _host: str, _record: RecordFile) -> bytes | None:
        return None

    def close(self) -> None:
        """Nothing is open."""
