"""The record of one `run`: the host, the environments and the scenarios of all its launches."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from corebound.bounded_numbers import Count, Signed
from corebound.machine.doctor.result import HostCheck
from corebound.machine.identity import Host
from corebound.records.race import RaceSetup
from corebound.scenario.cell import Cell

SCHEMA = 1

# The name of a label. Kubernetes and Slurm accept these characters too.
LABEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)

# Length of a commit's hash in a name; a tree's is as short as git's, because both appear together.
_OF_COMMIT = 10
_OF_TREE = 7
# In revisions that are counted from another one: the next night, they are another commit.
_RELATIVE = re.compile(r"HEAD|[~^@:]")


class Commit(Struct, frozen=True, kw_only=True):
    """The revision of the project under test.

    Attributes:
        subject: The first line of its message.
        committed_at: Its date, ISO 8601.
        dirty: Whether there were uncommitted changes.
        tree: Git's hash of the working tree that was measured instead; None if the commit
            itself was measured, or if that is unknown.
    """

    sha: str
    subject: str
    committed_at: str
    dirty: bool
    tree: str | None = None

    @property
    def name(self) -> str:
        """The name that identifies it in output and that commands accept.

        >>> one = Commit(sha="a" * 40, subject="", committed_at="", dirty=True, tree="b" * 40)
        >>> one.name
        'aaaaaaaaaa+dirty.bbbbbbb'
        """
        named = self.sha[:_OF_COMMIT]
        if self.tree is not None:
            return f"{named}+dirty.{self.tree[:_OF_TREE]}"
        return f"{named}+dirty" if self.dirty else named


class EnvironmentLock(Struct, frozen=True, kw_only=True):
    """The contents of an environment: interpreter and `name==version` of every package.

    `sha256` hashes its requirements file; it is empty for `host`, corebound's own environment.
    `commit` is the commit of the project under test that it contains, if any. The
    project itself is then not one of `packages`.
    """

    name: str
    sha256: str
    python: str
    packages: tuple[str, ...]
    commit: Commit | None = None


class ScenarioSource(Struct, frozen=True, kw_only=True):
    """A scenario as it was when the run began, so that a page needs no other file.

    `document` is `Scenario.document()`; `sha256` hashes it in canonical JSON.
    """

    path: str
    sha256: str
    document: dict[str, Any]


class Run(Struct, frozen=True, kw_only=True):
    """One invocation of `run`: everything that all its launches share.

    Times are ISO 8601 in UTC, to the second. `preflight` is the state of the host that
    `corebound doctor` finds when the run begins, without transient facts such as process ids. It
    is None in records of a corebound without this check.
    `budget_s` is the time after which the run starts no more launches; None if there was no
    limit or it was not recorded. A resumed run has its own budget, which is not recorded.
    `duplicates` are the cells that were not launched because another one is the same on the
    host: by scenario, the key of each and the key of the cell that was measured.
    `tuning` is what a run of `corebound tune` races for; None for other runs.
    `labels` are the user's names for this kind of host, such as `rack: a7`; a run of a fleet
    also has `fleet-plan` and `fleet-shard`.
    `anchors` are the pinned commits that its scenarios of the project under test alternated with:
    the current one first, then the one that it replaces, if nights overlap; empty without any.
    """

    schema: Count
    id: str
    started_at: str
    corebound: str
    argv: tuple[str, ...]
    seed: Signed
    profile: Literal["quick", "nightly"] | None
    only: tuple[str, ...]
    host: Host
    commit: Commit | None
    scenarios: tuple[ScenarioSource, ...]
    environments: tuple[EnvironmentLock, ...]
    preflight: tuple[HostCheck, ...] | None = None
    # Earlier versions wrote what was left of it, which may be below 0.
    budget_s: Annotated[float, Meta(ge=-1e100, le=1e100)] | None = None
    duplicates: dict[str, dict[str, str]] = field(default_factory=dict)
    tuning: RaceSetup | None = None
    labels: dict[str, str] = field(default_factory=dict)
    anchors: tuple[Commit, ...] = ()

    def anchor_name(self, sha: str) -> str:
        """An anchor by the tag or branch that the command gave and its hash, else by its hash."""
        short, given = sha[:_OF_COMMIT], self._values_of("--anchor")
        names = dict(zip((anchor.sha for anchor in self.anchors), given, strict=False))
        name = names.get(sha, sha)
        # One that is HEAD is not among the anchors, so that which name is whose is unknown.
        if len(given) != len(self.anchors) or sha.startswith(name) or _RELATIVE.search(name):
            return short
        return f"{name} ({short})"

    def source_of(self, scenario: str) -> ScenarioSource | None:
        """Its scenario of this name; None if it has none."""
        return next(
            (source for source in self.scenarios if source.document.get("name") == scenario), None
        )

    def measured_key(self, cell: Cell) -> str:
        """The key of the cell that was measured for a cell: its own, unless it is a duplicate."""
        return self.duplicates.get(cell.scenario, {}).get(cell.key, cell.key)

    @property
    def duplicate_ids(self) -> frozenset[str]:
        """The ids of the cells that were not launched because another one is the same."""
        return frozenset(
            f"{scenario}[{key}]" for scenario, keys in self.duplicates.items() for key in keys
        )

    def commit_of(self, environment: str) -> Commit | None:
        """The commit built for this environment; else the commit of the run's folder."""
        lock = self.lock_of(environment)
        return lock.commit if lock is not None and lock.commit is not None else self.commit

    @property
    def config_option(self) -> tuple[str, ...]:
        """`--config FILE` as in its command: which project is under test; empty without it."""
        files = self._values_of("--config")
        return ("--config", files[0]) if files else ()

    @property
    def launches(self) -> int | None:
        """The launches of each cell that --launches asked for; None without it."""
        numbers = [int(value) for value in self._values_of("--launches") if value.isdecimal()]
        return numbers[-1] if numbers else None

    @property
    def env(self) -> dict[str, str]:
        """The environment variables that --env set, by name, with the values that they had."""
        names = {value.partition("=")[0] for value in self._values_of("--env")}
        return {
            name: str(value)
            for source in self.scenarios
            for name, value in (source.document.get("env") or {}).items()
            if name in names
        }

    def _values_of(self, option: str) -> list[str]:
        """The values of an option in its command, in order."""
        values = []
        for word, following in itertools.zip_longest(self.argv, self.argv[1:], fillvalue=""):
            name, equals, joined = word.partition("=")
            if name == option:
                values.append(joined if equals else following)
        return values

    def snapshot_in(self, environments: Iterable[str]) -> Commit | None:
        """The modified working tree built for one of these environments; None if there is none."""
        held = (lock.commit for name in environments if (lock := self.lock_of(name)) is not None)
        return next(
            (commit for commit in held if commit is not None and commit.tree is not None), None
        )

    def lock_of(self, environment: str) -> EnvironmentLock | None:
        """The contents of the environment of this name; None if unknown."""
        return next((lock for lock in self.environments if lock.name == environment), None)

    def lock_of_commit(self, sha: str) -> EnvironmentLock | None:
        """The contents of the environment that this commit was built in; None without any."""
        locks = (lock for lock in self.environments if lock.commit and lock.commit.sha == sha)
        return next(locks, None)
