"""Check this host, from a script or a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from corebound.analysis.wording import count
from corebound.api.shown import Shown
from corebound.machine.doctor.result import HostCheck
from corebound.machine.doctor.tuning import SettingResult
from corebound.workflow import host_checks as workflow
from corebound.workflow.host_checks import LIVE, examine_host


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


def doctor(*files: str | PathLike[str], root: str | PathLike[str] = LIVE) -> HostChecks:
    """Check this host and change nothing, as `corebound doctor` does.

    Args:
        files: The scenario files, or folders of them, whose programs and environments to check;
            without any, those of the folder `scenarios` and of the current folder.
        root: Another machine: a folder with its proc/ and sys/.

    Raises:
        ScenarioFaults: A file has mistakes.
        InputError: A file cannot be read, or there is no such folder.
    """
    examined = examine_host(tuple(Path(file) for file in files), Path(root))
    return HostChecks(
        checks=tuple(check.host_check for check in examined.checks), document=examined.document
    )


def tune_host(
    *files: str | PathLike[str], root: str | PathLike[str] = LIVE
) -> tuple[SettingResult, ...]:
    """As root, change the settings that cause warnings, as `corebound doctor --tune` does.

    Args:
        files: As for `doctor`.
        root: As for `doctor`.

    Returns:
        The result of each setting, with its `fault` if it could not be changed; empty if no warning
        can be fixed by a setting.

    Raises:
        HostError: No permission to change any of them, or a run is active.
    """
    examined = examine_host(tuple(Path(file) for file in files), Path(root))
    return workflow.tune_host(examined.checks, Path(root))


def restore_host(root: str | PathLike[str] = LIVE) -> tuple[SettingResult, ...]:
    """Restore the settings that `tune_host` has changed, as `corebound doctor --restore` does.

    Args:
        root: As for `doctor`.

    Raises:
        HostError: Some settings could not be restored, or a run is active.
    """
    results, error = workflow.restore_host(Path(root))
    if error is not None:
        raise error
    return results
