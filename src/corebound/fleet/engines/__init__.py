"""The engines that start agents on hosts; only these modules import an engine's library."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from corebound.errors import HostError
from corebound.fleet.file import FleetFile, HostEntry
from corebound.fleet.folder import AttemptState, RecordFile, ShardReport
from corebound.fleet.plan import Assignment

# An engine's program that says nothing for so long has failed.
_ANSWER_S = 60


class JobState(Struct, frozen=True, kw_only=True):
    """What an engine says of one delivery of a shard.

    `report` is the agent's, once it has ended; without one, an ended job is lost.
    """

    state: AttemptState
    reason: str = ""
    report: ShardReport | None = None


class Engine(Protocol):
    """Starts agents on hosts. It never moves a shard to another host than its own."""

    @property
    def outlives_us(self) -> bool:
        """Whether jobs go on when this process ends."""
        ...

    @property
    def one_at_a_time(self) -> bool:
        """Whether a host gets its next shard only when the last one has ended."""
        ...

    def select(self, entry: HostEntry) -> Sequence[str]:
        """The names of the hosts that an entry of the fleet file selects.

        Raises:
            CoreboundError: There is none, or the engine does not answer.
        """
        ...

    def absent(self, hosts: Sequence[str]) -> Mapping[str, str]:
        """The hosts that can start nothing now, each with the reason."""
        ...

    def submit(
        self, assignments: Sequence[Assignment], *, again: bool
    ) -> Iterator[tuple[str, str]]:
        """Deliver shards; those that it has yielded are delivered, whatever comes after.

        Args:
            again: Whether agents resume shards that have failed.

        Yields:
            The id of each shard, and the engine's name for its job.

        Raises:
            CoreboundError: The engine refuses the rest.
        """
        ...

    def poll(self, jobs: Mapping[str, tuple[Assignment, str]]) -> Mapping[str, JobState]:
        """The state of deliveries, by the shard's id.

        Raises:
            CoreboundError: The engine does not answer.
        """
        ...

    def cancel(self, jobs: Mapping[str, tuple[Assignment, str]]) -> None:
        """Stop deliveries; launches that they have recorded remain."""
        ...

    def close(self) -> None:
        """Disconnect."""
        ...


class RemoteEngine(Engine, Protocol):
    """An engine whose hosts may share no file system with us."""

    def read(self, host: str, record: RecordFile) -> bytes | None:
        """A file of records of a host that shares no file system with us; None if it cannot."""
        ...


def open_engine(fleet: FleetFile, hosts: Sequence[str], files: Path) -> Engine:
    """Connect to the engine of a fleet.

    Raises:
        HostError: Its library is not installed.
        CoreboundError: The engine cannot be reached.
    """
    try:
        module = import_module(f"corebound.fleet.engines.{fleet.engine}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "corebound":
            raise
        raise HostError(
            what=f"the engine {fleet.engine} needs the package `{error.name}`.",
            where="corebound fleet",
            fix=f"Install it: `pip install 'corebound[fleet-{fleet.engine}]'`.",
        ) from error
    engine: Engine = module.connect(fleet, hosts, files)
    return engine


def answer_of(command: Sequence[str], *, of: str, missing: str, silent: str) -> str:
    """Run a program of an engine and return its output.

    Args:
        of: What answers, to begin a sentence with.
        missing: How to fix that the program is not installed.
        silent: How to fix that it fails or does not answer.

    Raises:
        HostError: It fails, does not answer, or is not installed.
    """
    try:
        completed = subprocess.run(
            command,
            capture_output=True,
            check=True,
            timeout=_ANSWER_S,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise HostError(
            what=f"`{command[0]}` is not installed here.", where=command[0], fix=missing
        ) from error
    except subprocess.SubprocessError as error:
        why = str(getattr(error, "stderr", None) or error).strip()
        raise no_answer(of, why, where=command[0], fix=silent) from error
    return completed.stdout


def no_answer(of: str, why: str, *, where: str, fix: str) -> HostError:
    """The error of an engine that does not answer."""
    return HostError(what=f"{of} does not answer: {why}.", where=where, fix=fix)
