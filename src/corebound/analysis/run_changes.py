"""What else changed between two runs, beside the code: packages, kernel, governor, quota."""

from collections.abc import Iterator

from msgspec import Struct

from corebound.analysis.hardware import varying_facts
from corebound.records.run_record import EnvironmentLock, Run

# How many packages of an environment a sentence names.
_MOST_NAMED = 8


class RunChange(Struct, frozen=True, kw_only=True):
    """One thing that differs between two runs, in words; `none` if a run does not have it."""

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        """The change in a few words."""
        return f"{self.name} {self.before} → {self.after}"


def run_changes(before: Run, after: Run) -> tuple[RunChange, ...]:
    """What may change values besides the commit, as far as both runs recorded it."""
    facts, later = ({**varying_facts(run), "corebound": run.corebound} for run in (before, after))
    names = (
        name for name in facts if name != "commit" and not name.startswith(("packages of", "label"))
    )
    changes = [
        RunChange(name=name, before=facts[name], after=later[name])
        for name in names
        if name in later and facts[name] != later[name]
    ]
    for lock in before.environments:
        if (other := after.lock_of(lock.name)) is not None:
            changes += package_changes(lock, other)
    return tuple(changes)


def changes_text(changes: tuple[RunChange, ...]) -> str:
    """All changes in a sentence; of many packages the first; empty without any."""
    more = len(changes) - _MOST_NAMED
    shown = changes[:_MOST_NAMED] if more > 1 else changes
    listed = "; ".join(map(str, shown))
    return f"{listed}; {more} more (--json lists them)" if len(shown) < len(changes) else listed


def package_changes(before: EnvironmentLock, after: EnvironmentLock) -> Iterator[RunChange]:
    """How the packages and the interpreter of an environment changed."""
    versions, later = (
        {"Python": lock.python, **dict(each.partition("==")[::2] for each in lock.packages)}
        for lock in (before, after)
    )
    for name in sorted({*versions, *later}, key=str.lower):
        old, new = versions.get(name, "none"), later.get(name, "none")
        if old != new:
            yield RunChange(name=f"{name} in {before.name}", before=old, after=new)
