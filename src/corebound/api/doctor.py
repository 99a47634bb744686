"""Check this host, from a script or a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from corebound.analysis.wording import count
from corebound.api.shown import Shown
from corebound.machine.doctor.result import HostCheck
from corebound.workflow.host_checks import examine_host


class HostChecks(Shown, frozen=True, kw_only=True):
    """The conditions of a host that affect measurements.

    Attributes:
        checks: Each with its `state`, `value`, `why` and `fix`.
        document: The same as plain data, as `corebound doctor --json` prints it.
    """

    shown: ClassVar = ("check", "state", "value", "fix")

    checks: tuple[HostCheck, ...]
    document: Mapping[str, Any]

    def heading(self) -> str:
        """The number of warnings."""
        return f"{count(len(self.warnings), 'warning')} in {count(len(self), 'check')}"

    def __len__(self) -> int:
        """The number of checks."""
        return len(self.checks)

    def __iter__(self) -> Iterator[HostCheck]:
        """Every check."""
        return iter(self.checks)

    @property
    def warnings(self) -> tuple[HostCheck, ...]:
        """The checks that are warnings."""
        return tuple(check for check in self.checks if check.state == "warning")


def doctor(*files: str | PathLike[str]) -> HostChecks:
    """Check this host and change nothing, as `corebound doctor` does.

    Args:
        files: The scenario files, or folders of them, whose programs and environments to check;
            without any, those of the folder `scenarios` and of the current folder.

    Raises:
        ScenarioFaults: A file has mistakes.
        InputError: A file cannot be read.
    """
    examined = examine_host(tuple(Path(file) for file in files))
    return HostChecks(
        checks=tuple(check.host_check for check in examined.checks), document=examined.document
    )
