"""The frozen plan of a fleet: what each host measures, with ids that never change."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from corebound.records.codec import canonical
from corebound.records.run_record import Commit
from corebound.scenario.models import ProfileName

SCHEMA = 1
# Hexadecimal digits of an id: with 48 bits, a million shards collide with probability 0.002.
ID_LENGTH = 12


class PlannedScenario(Struct, frozen=True, kw_only=True):
    """A scenario of the plan, as it is in the planned commit.

    Attributes:
        path: Its file, from the folder of the fleet file.
        sha256: The hash of its document, as in records.
        environments: For each environment that it needs, the hash of the requirements, as in
            records; empty for corebound's own Python and for environments that asv builds.
    """

    name: str
    path: str
    sha256: str
    environments: dict[str, str]


class PlannedHost(Struct, frozen=True, kw_only=True):
    """A host, by the engine's name for it, with the labels of its records."""

    name: str
    labels: dict[str, str]


class Source(Struct, frozen=True, kw_only=True):
    """The repository at the planned commit, as a git bundle in the plan's folder.

    Attributes:
        folder: The folder of the fleet file in the repository; empty for its root.
        sha256: The hash of the bundle's file.
    """

    folder: str
    sha256: str
    size_bytes: int


class Shard(Struct, frozen=True, kw_only=True):
    """One scenario on one host: the unit that an engine starts, and that is done or missing."""

    id: str
    host: str
    scenario: str


class Plan(Struct, frozen=True, kw_only=True):
    """What a fleet measures.

    Attributes:
        id: The hash of what is measured: the same inputs give the same plan.
        round: Distinguishes repetitions of the same measurement, such as nights.
        created_at: When it was planned.
        source: Where agents get that commit.
        document: The fleet file, without defaults.
    """

    schema: int
    id: str
    name: str
    round: str
    engine: Literal["dask", "slurm", "kubernetes"]
    created_at: str
    corebound: str
    commit: Commit
    source: Source
    document: dict[str, Any]
    scenarios: tuple[PlannedScenario, ...]
    hosts: tuple[PlannedHost, ...]
    shards: tuple[Shard, ...]

    def scenario_of(self, shard: Shard) -> PlannedScenario:
        """The scenario of a shard."""
        return next(scenario for scenario in self.scenarios if scenario.name == shard.scenario)

    def host_of(self, shard: Shard) -> PlannedHost:
        """The host of a shard."""
        return next(host for host in self.hosts if host.name == shard.host)


class Assignment(Struct, frozen=True, kw_only=True):
    """Everything that an agent needs to carry out one shard; it crosses the wire as JSON.

    Attributes:
        plan: The plan's id.
        shard: The shard's id.
        host: The only host that may carry it out.
        scenario: The scenario, with the hashes of its environments.
        bundle: The bundle's path, where the host shares a file system with the coordinator.
        key: The key that signs its report, in hexadecimal.
        work: The working folder on the host; None is in corebound's cache there.
        wheelhouse: The folder of wheels on the host, if it has no package index.
        profile, only, launches, budget_s: As options of `corebound run`.
    """

    plan: str
    shard: str
    host: str
    scenario: PlannedScenario
    commit: str
    source: Source
    bundle: str
    key: str
    labels: dict[str, str]
    work: str | None = None
    wheelhouse: str | None = None
    profile: ProfileName | None = None
    only: tuple[str, ...] = ()
    launches: int | None = None
    budget_s: int | None = None

    @property
    def seed(self) -> int:
        """The seed of its run, so that an interrupted run resumes in the same order."""
        return int(self.shard[:7], 16)


# Keys of the fleet file that say where and how it is measured, not what.
_NOT_MEASURED = ("dask", "slurm", "kubernetes", "work", "wheelhouse", "hosts", "commit")


def freeze(
    *,
    document: Mapping[str, Any],
    round_name: str,
    created_at: str,
    corebound: str,
    commit: Commit,
    source: Source,
    scenarios: Iterable[PlannedScenario],
    hosts: Iterable[PlannedHost],
) -> Plan:
    """Make the plan of a fleet.

    Args:
        round_name: Distinguishes repetitions of the same measurement.
        created_at: The time, which is no part of the plan's id.
        source: The bundle of that commit; its hash is no part of the plan's id, because git
            may pack the same commit differently.
    """
    plan = Plan(
        schema=SCHEMA,
        id="",
        name=str(document["name"]),
        round=round_name,
        engine=document["engine"],
        created_at=created_at,
        corebound=corebound,
        commit=commit,
        source=source,
        document=dict(document),
        scenarios=tuple(sorted(scenarios, key=lambda scenario: scenario.name)),
        hosts=tuple(sorted(hosts, key=lambda host: host.name)),
        shards=(),
    )
    plan_id = _digest(
        [
            plan.name,
            round_name,
            corebound,
            commit.sha,
            source.folder,
            to_builtins(plan.scenarios),
            to_builtins(plan.hosts),
            {key: value for key, value in document.items() if key not in _NOT_MEASURED},
        ]
    )
    shards = tuple(
        Shard(
            id=_digest([plan_id, scenario.name, scenario.environments, host.name, commit.sha]),
            host=host.name,
            scenario=scenario.name,
        )
        for host in plan.hosts
        for scenario in plan.scenarios
    )
    return replace(plan, id=plan_id, shards=shards)


def _digest(value: object) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()[:ID_LENGTH]
