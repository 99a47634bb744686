"""One invocation of `run`: the host, the environments and the scenarios of all its launches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct

from corebound.bounds import Amount, Count, Signed
from corebound.machine.doctor.check import HostCheck
from corebound.machine.identity import Host

SCHEMA = 1


# Letters of the hashes in a commit's name; of a tree as git abbreviates, for it never stands alone.
_OF_COMMIT = 10
_OF_TREE = 7


class Commit(Struct, frozen=True, kw_only=True):
    """The revision of the project under test.

    Attributes:
        sha: Its hash.
        subject: The first line of its message.
        committed_at: Its date, ISO 8601.
        dirty: Whether there were changes that are not committed.
        tree: The hash of the working tree that was measured instead, as git has it; None where
            the commit itself was, and where that is not known.
    """

    sha: str
    subject: str
    committed_at: str
    dirty: bool
    tree: str | None = None

    @property
    def name(self) -> str:
        """What it is called wherever it is shown, and found by.

        >>> one = Commit(sha="a" * 40, subject="", committed_at="", dirty=True, tree="b" * 40)
        >>> one.name
        'aaaaaaaaaa+dirty.bbbbbbb'
        """
        named = self.sha[:_OF_COMMIT]
        if self.tree is not None:
            return f"{named}+dirty.{self.tree[:_OF_TREE]}"
        return f"{named}+dirty" if self.dirty else named


class EnvironmentLock(Struct, frozen=True, kw_only=True):
    """What an environment held: interpreter and `name==version` of every package.

    `sha256` hashes its requirements file; it is empty for `host`, corebound's own.
    `commit` is the one that it holds of the project under test, where it does; the
    project itself is then none of `packages`.
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
    """One invocation of `run`: everything that is the same for all its launches.

    Times are ISO 8601 in UTC, to the second. `preflight` is what `corebound doctor`
    saw of the host when the run began, without what only held then, such as ids of processes;
    None in records of a corebound that did not look.
    `budget_s`: as it began it was told to start no launch after so many seconds; None: it was
    not, or nobody kept it. What goes on with a run has a budget of its own, which is not kept.
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
    budget_s: Amount | None = None

    def source_of(self, scenario: str) -> ScenarioSource | None:
        """Its scenario of this name; None where it has none."""
        return next((one for one in self.scenarios if one.document.get("name") == scenario), None)

    def commit_of(self, environment: str) -> Commit | None:
        """The commit that was built for this environment; else that of the run's folder."""
        lock = self.lock_of(environment)
        return lock.commit if lock is not None and lock.commit is not None else self.commit

    def snapshot_in(self, environments: Iterable[str]) -> Commit | None:
        """The working tree with changes that was built for one of these; None where none was."""
        held = (lock.commit for name in environments if (lock := self.lock_of(name)) is not None)
        return next((one for one in held if one is not None and one.tree is not None), None)

    def lock_of(self, environment: str) -> EnvironmentLock | None:
        """What the environment of this name held; None where that is not known."""
        return next((one for one in self.environments if one.name == environment), None)
