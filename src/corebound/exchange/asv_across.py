"""What series of asv go on across, though asv has another for each: machines, a requirement.

Hosted runners are machines of another name each night. A package that is installed as a
requirement, and not built from its commit, is one of another version each night; to asv each
version is an environment of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from corebound.errors import Fault, InputError
from corebound.exchange.asv_results import ResultFile

# A few versions may each have been measured at one commit by chance.
_FEWEST_VERSIONS = 5


class Across(Struct, frozen=True, kw_only=True):
    """What a user says that series go on across.

    Attributes:
        machine: What to call all machines, where they are one for whoever reads the history.
        under_test: Requirements that are what is measured, in all their versions.
    """

    machine: str | None = None
    under_test: tuple[str, ...] = ()


class Requirements:
    """What the files of a project required, taken one after another."""

    def __init__(self) -> None:
        """Begin with no file."""
        self._commits: dict[str, dict[str, set[str]]] = {}

    def add(self, file: ResultFile) -> None:
        """Take what a file says."""
        for name, version in file.requirements.items():
            self._commits.setdefault(name, {}).setdefault(version, set()).add(file.commit)

    def check(self, across: Across, where: str) -> None:
        """Have those under test be some of those there are.

        Args:
            across: What is said of it.
            where: The folder of the files.

        Raises:
            InputError: one is none of them.
        """
        name = next((each for each in across.under_test if each not in self._commits), None)
        if name is None:
            return
        those = f"They require {', '.join(sorted(self._commits))}." if self._commits else None
        raise InputError(
            what=f"none of its files that was read has a requirement {name!r}.",
            where=where,
            mend=those or "They require nothing; leave --under-test out.",
        )

    def several_a_commit(self, across: Across, where: str) -> Iterator[Fault]:
        """That commits were measured with several versions of what is under test."""
        for name in across.under_test:
            commits = Counter(sha for own in self._commits[name].values() for sha in own)
            number = sum(times > 1 for times in commits.values())
            if number:
                yield Fault(
                    file=where,
                    line=None,
                    what=f"{number:,} of {len(commits):,} commits were measured with several"
                    f" versions of {name}, and of each commit one figure counts.",
                    mend="Leave --under-test out, or name a requirement that goes with commits.",
                )

    def one_a_commit(self) -> Sequence[str]:
        """Those of which every version is that of one commit: they name what is measured."""
        return [name for name, versions in sorted(self._commits.items()) if _one_each(versions)]


def _one_each(versions: Mapping[str, set[str]]) -> bool:
    """Whether every version is that of a commit which has no other."""
    several = [*versions.values()]
    commits = set[str]().union(*several)
    return _FEWEST_VERSIONS <= len(several) == len(commits) == sum(map(len, several))
