"""The folder of a plan: the frozen plan, the bundle of its commit, and the state of each shard.

FLEET/current             the id of the current plan
FLEET/hosts.json          which host id each host has shown
FLEET/ID/plan.json        the plan
FLEET/ID/source.bundle    the planned commit
FLEET/ID/key              the key with which the agents of the plan sign their reports
FLEET/ID/shards/ID.json   what became of a shard
FLEET/ID/engine/          files of the engine
"""

from __future__ import annotations

import fcntl
import hmac
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, Literal, TypeVar

import msgspec
import pydantic
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from corebound.errors import HostError, InputError, report_os_errors
from corebound.fleet.file import FleetFile
from corebound.fleet.plan import SCHEMA, Plan, Shard, freeze
from corebound.machine.lock import flock_holder
from corebound.records import atomic_write
from corebound.records.codec import UnreadableError, canonical, decoder, encode_document

# Of many rounds, an error lists the latest.
_MOST_LISTED = 10
_ID = re.compile(r"[0-9a-f]{12}", re.ASCII)
# As many bytes as SHA-256 gives, which RFC 2104 recommends.
_KEY_BYTES = 32
_KEY = re.compile(rf"[0-9a-f]{{{2 * _KEY_BYTES}}}", re.ASCII)


class RecordFile(Struct, frozen=True, kw_only=True):
    """A file of records on a host: its path there, and the hash of its content."""

    path: str
    sha256: str
    size_bytes: int


ReportState = Literal["done", "failed", "refused"]


class ShardReport(Struct, frozen=True, kw_only=True):
    """What an agent says of a shard; it holds no samples.

    Attributes:
        shard: The shard's id.
        host: The host, by the engine's name for it.
        state: `done`: all its launches are recorded. `failed`: it can be resumed.
            `refused`: the agent may not carry it out here.
        reason: Why it is not done, or what is worth knowing though it is.
        ended_at: The time by the host's clock.
        signature: The HMAC of everything else with the plan's key, so also of the hash of each
            file.
    """

    shard: str
    host: str
    state: ReportState
    reason: str = ""
    records: tuple[RecordFile, ...] = ()
    ended_at: str = ""
    signature: str = ""

    def signed(self, key: str) -> ShardReport:
        """The report with the signature of this key.

        Source: HMAC-SHA-256, RFC 2104.
        """
        content = canonical(replace(self, signature=""))
        digest = hmac.new(bytes.fromhex(key), content, "sha256").hexdigest()
        return replace(self, signature=digest)

    def is_signed(self, key: str) -> bool:
        """Whether an agent with this key has made the report, and nobody has changed it."""
        return hmac.compare_digest(self.signature.encode(), self.signed(key).signature.encode())


AttemptState = Literal["queued", "running", "ended", "lost", "cancelled"]


class Attempt(Struct, frozen=True, kw_only=True):
    """One delivery of a shard to an engine.

    Attributes:
        started_at: When it was submitted, by the coordinator's clock.
        state: `lost`: it ended without a report.
        reason: Why it was lost.
    """

    job: str
    started_at: str
    state: AttemptState
    reason: str = ""


class ShardState(Struct, frozen=True, kw_only=True):
    """What became of a shard.

    Attributes:
        attempts: Every delivery, the oldest first.
        report: The last report of an agent.
        clock_skew_s: Seconds by which the host's clock is ahead of the coordinator's, if that
            is more than the delivery of a report may take.
        collected: The names of the collected files, below the folder of records.
        problem: Why its records were not collected.
        absent: Why its host could start nothing when the engine was asked last; empty if it could.
    """

    attempts: tuple[Attempt, ...] = ()
    report: ShardReport | None = None
    clock_skew_s: float | None = None
    collected: tuple[str, ...] = ()
    problem: str = ""
    absent: str = ""


def _check_plan(document: _PlanFile) -> None:
    """Check that nothing was changed by hand: a plan is frozen, and its ids are hashes."""
    plan = document.plan
    try:
        FleetFile.model_validate(plan.document)
    except pydantic.ValidationError as error:
        raise ValueError(f"its document is no fleet file: {error.errors()[0]['msg']}") from None
    frozen = freeze(
        document=plan.document,
        round_name=plan.round,
        created_at=plan.created_at,
        corebound=plan.corebound,
        commit=plan.commit,
        source=plan.source,
        scenarios=plan.scenarios,
        hosts=plan.hosts,
    )
    if (frozen.id, frozen.shards) != (plan.id, plan.shards):
        raise ValueError("it was changed after it was planned")


class _PlanFile(Struct, frozen=True, kw_only=True):
    schema: int
    plan: Plan


class _StateFile(Struct, frozen=True, kw_only=True):
    schema: int
    state: ShardState


class _HostsFile(Struct, frozen=True, kw_only=True):
    schema: int
    ids: dict[str, str]


_read_plan = decoder(_PlanFile, SCHEMA, _check_plan)
_read_state = decoder(_StateFile, SCHEMA, lambda _document: None)
_read_hosts = decoder(_HostsFile, SCHEMA, lambda _document: None)
_T = TypeVar("_T")


class PlanHeldError(HostError):
    """Another command holds the plan."""


class PlanFolder:
    """One plan and the state of its shards, on disk. Every file is written in one step."""

    def __init__(self, path: Path, plan: Plan) -> None:
        """Take the folder and its plan; `create` and `open_folder` make them."""
        self.path = path
        self.plan = plan

    @property
    def document(self) -> dict[str, Any]:
        """The folder and its plan as plain data, as `--json` prints them."""
        return {"folder": str(self.path), "plan": to_builtins(self.plan)}

    @property
    def bundle(self) -> Path:
        """The bundle of the planned commit."""
        return self.path / "source.bundle"

    @cached_property
    def key(self) -> str:
        """The key with which the agents of the plan sign their reports, in hexadecimal.

        Raises:
            InputError: It cannot be read, or is damaged.
        """
        file = self.path / "key"
        try:
            key = atomic_write.read(file).decode("ascii")
        except (OSError, UnicodeDecodeError):
            key = ""
        if not _KEY.fullmatch(key):
            raise InputError(
                what="the key of the plan cannot be read.",
                where=str(file),
                fix="Copy the whole folder of the plan, or delete it and plan again.",
            )
        return key

    def state_of(self, shard: Shard) -> ShardState:
        """The state of a shard; the initial one if nothing happened yet.

        Raises:
            InputError: The file is damaged.
        """
        file = self._state_file(shard)
        document = _read(file, _read_state)
        return ShardState() if document is None else document.state

    def write_state(self, shard: Shard, state: ShardState) -> None:
        """Replace the state of a shard.

        Raises:
            InputError: It cannot be written; the old one remains.
        """
        _write(self._state_file(shard), _StateFile(schema=SCHEMA, state=state))

    def _state_file(self, shard: Shard) -> Path:
        return self.path / "shards" / f"{shard.id}.json"

    def host_ids(self) -> dict[str, str]:
        """The id of each host of the fleet that has shown one, by the engine's name for it.

        Raises:
            InputError: The file is damaged.
        """
        document = _read(self._hosts_file, _read_hosts)
        return {} if document is None else document.ids

    def write_host_ids(self, ids: dict[str, str]) -> None:
        """Replace the ids of the fleet's hosts.

        Raises:
            InputError: They cannot be written; the old ones remain.
        """
        _write(self._hosts_file, _HostsFile(schema=SCHEMA, ids=ids))

    @property
    def _hosts_file(self) -> Path:
        return self.path.parent / "hosts.json"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the plan, so that no other command changes its state.

        Raises:
            PlanHeldError: Another command holds it.
            InputError: The folder cannot be written.
        """
        with report_write_errors(self.path):
            stream = (self.path / "lock").open("ab")
        # Errors of the caller's block are not those of this file.
        with stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise PlanHeldError(
                    what=f"another command works on this plan: {flock_holder(stream.fileno())}.",
                    where=str(self.path),
                    fix="Wait for it to end, or stop it.",
                ) from None
            yield


def create(fleet_folder: Path, plan: Plan, bundle: Path) -> PlanFolder:
    """Freeze a plan, and make it the current one. An identical plan keeps its state.

    Args:
        bundle: The bundle of its commit, which is moved into the folder.

    Raises:
        InputError: The folder cannot be written.
    """
    path = fleet_folder / plan.id
    with report_write_errors(path):
        if not (path / "plan.json").exists():
            path.mkdir(parents=True, exist_ok=True)
            bundle.replace(path / "source.bundle")
            _write_key(path / "key")
            # Last: without it there is no plan.
            _write(path / "plan.json", _PlanFile(schema=SCHEMA, plan=plan))
        atomic_write.put(fleet_folder / "current", f"{plan.id}\n".encode())
    return open_folder(fleet_folder)


def _write_key(file: Path) -> None:
    """Make a key that only the owner and the group of the folder can read."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(secrets.token_hex(_KEY_BYTES))


def plans(fleet_folder: Path) -> list[PlanFolder]:
    """The plans of a fleet, the oldest first, unchecked; damaged ones are left out."""
    found = []
    for file in fleet_folder.glob("*/plan.json"):
        with suppress(OSError, ValueError, RecursionError):
            plan = msgspec.json.decode(atomic_write.read(file), type=_PlanFile).plan
            # A copy under another name is no plan of the fleet.
            if plan.id == file.parent.name:
                found.append(PlanFolder(file.parent, plan))
    return sorted(found, key=lambda folder: (folder.plan.created_at, folder.plan.id))


def _path_of(fleet_folder: Path, name: str) -> Path:
    """The folder of the only plan of a round, or of the plan with this id."""
    known = plans(fleet_folder)
    rounds = [folder.plan.round for folder in known]
    same = [folder for folder in known if folder.plan.round == name]
    found = same or [folder for folder in known if folder.path.name == name]
    if len(found) == 1:
        return found[0].path
    names = [f"`--round {folder.path.name}` (commit {folder.plan.commit.name})" for folder in same]
    names = names or [f"`--round {quote(name)}`" for name in dict.fromkeys(rounds)]
    latest = ", ".join(reversed(names[-_MOST_LISTED:]))
    raise InputError(
        what=f"{len(same) or 'no'} plans have the round `{name}`.",
        where=str(fleet_folder),
        fix=f"Choose {latest or 'it with `corebound fleet plan FILE --round NAME`'}.",
    )


def open_folder(fleet_folder: Path, round_name: str | None = None) -> PlanFolder:
    """Open the current plan of a fleet, or the one of a round or with an id.

    Raises:
        InputError: There is none, or it is damaged.
    """
    if round_name is not None:
        return open_path(_path_of(fleet_folder, round_name))
    try:
        current = (fleet_folder / "current").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        current = ""
    if not _ID.fullmatch(current):
        raise InputError(
            what="there is no plan yet.",
            where=str(fleet_folder),
            fix="Make one: `corebound fleet plan FILE`.",
        )
    return open_path(fleet_folder / current)


def open_path(path: Path) -> PlanFolder:
    """Open a plan by its own folder.

    Raises:
        InputError: It holds no plan, or a damaged one.
    """
    document = _read(path / "plan.json", _read_plan)
    if document is None:
        raise InputError(
            what="it is not the folder of a plan.",
            where=str(path),
            fix="Name the folder that `corebound fleet plan` prints.",
        )
    return PlanFolder(path, document.plan)


def _read(file: Path, decode: Callable[[Iterable[bytes]], _T]) -> _T | None:
    try:
        data = atomic_write.read(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(
            what=f"it cannot be read: {error.strerror}.", where=str(file), fix="Check the path."
        ) from error
    try:
        return decode([data])
    except UnreadableError as error:
        raise InputError(
            what=f"it is damaged: {error}.",
            where=str(file),
            fix="Delete it. Agents keep what they have measured.",
        ) from None


def _write(file: Path, document: Struct) -> None:
    with report_write_errors(file):
        atomic_write.put_durably(file, encode_document(document))


def report_write_errors(path: Path) -> AbstractContextManager[None]:
    """Report an OSError in the block as an error of the plan's folder."""
    return report_os_errors(
        "the plan's folder cannot be written",
        where=path,
        fix="Free some space, or choose another folder with --folder.",
    )
