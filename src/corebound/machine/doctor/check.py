"""How a check of the host is declared: its name, why it matters, and what a host shows of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from corebound.machine.doctor.host_facts import HostFacts
from corebound.machine.doctor.result import (
    CheckResult,
    Group,
    HostCheck,
    SettingChange,
    State,
    command,
    printable,
)
from corebound.machine.sysfs import read_text, selected


class Finding(Struct, frozen=True):
    """What a host shows: the fields of `HostCheck` that differ from host to host.

    `changes` are those of the settings that root may safely change to fix it. `durable` is for
    records, if the finding contains details that are valid only now, such as process ids.
    """

    state: State
    value: str
    fix: str | None = None
    undo: str | None = None
    changes: tuple[SettingChange, ...] = ()
    durable: Finding | None = None


class Check(Struct, frozen=True):
    """One check: its name, its group, what it finds on a host, and how that affects results."""

    name: str
    group: Group
    find: Callable[[HostFacts], Finding]
    why: str

    def result(self, facts: HostFacts) -> CheckResult:
        """Check a host."""
        found = self.find(facts)
        return CheckResult(
            host_check=self._host_check(found),
            changes=found.changes,
            durable=self._host_check(found.durable) if found.durable else None,
        )

    def _host_check(self, found: Finding) -> HostCheck:
        return HostCheck(
            check=self.name,
            group=self.group,
            state=found.state,
            value=found.value,
            why=self.why,
            fix=found.fix,
            undo=found.undo,
        )


def ok(value: str) -> Finding:
    """There is nothing to fix."""
    return Finding("ok", value)


def unavailable(value: str) -> Finding:
    """The host does not show it; `value` says what is missing."""
    return Finding("unavailable", value)


def unreadable(text: str) -> Finding:
    """The host shows it, but corebound does not understand it."""
    return unavailable(f"unexpected content: {printable(text)}")


def warning(value: str, *, fix: str, undo: str | None = None) -> Finding:
    """Only the user can fix it."""
    return Finding("warning", value, fix, undo)


def fixable(value: str, changes: Sequence[SettingChange]) -> Finding:
    """Changes of settings fix it; the commands are derived from them."""
    fix = command((change.path, change.value) for change in changes)
    undo = command((change.path, change.prior) for change in changes)
    return Finding("warning", value, fix, undo, tuple(changes))


# A setting's value in words, and whether it is a warning.
Meaning = tuple[str, bool]


class Setting(Struct, frozen=True, kw_only=True):
    """Finds the value of a setting that is one file.

    Attributes:
        missing: What is missing if there is no such file.
        meanings: What each value means, or what the host makes of a value; without a meaning, the
            content is unexpected.
        wanted: The value that fixes a warning.
    """

    path: str
    missing: str
    meanings: Mapping[str, Meaning] | Callable[[HostFacts, str], Meaning | None]
    wanted: str

    def __call__(self, facts: HostFacts) -> Finding:
        """What the host shows of it."""
        text = read_text(facts.tree, self.path)
        if text is None:
            return unavailable(self.missing)
        value, meanings = selected(text), self.meanings
        meaning = meanings.get(value) if isinstance(meanings, Mapping) else meanings(facts, value)
        if meaning is None:
            return unreadable(text)
        words, is_disturbing = meaning
        change = SettingChange(path=self.path, prior=value, value=self.wanted)
        return fixable(words, [change]) if is_disturbing else ok(words)
