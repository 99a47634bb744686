"""Read and extend the repository's file of decisions about regressions."""

from __future__ import annotations

from pathlib import Path

from corebound.errors import Fault, InputError, ScenarioFaults, report_os_errors
from corebound.records import atomic_write
from corebound.records.decisions import HEAD, Decision, entry, read_decisions

STATUS = Path("reports/regressions.yaml")


def read(status: Path) -> tuple[tuple[Decision, ...], tuple[Fault, ...]]:
    """Read the decisions and the file's errors; both are empty if there is no file."""
    try:
        return read_decisions(atomic_write.read(status), str(status))
    except FileNotFoundError:
        return (), ()
    except OSError as error:
        fault = Fault(
            file=str(status),
            line=None,
            what=f"cannot be read: {error.strerror}.",
            fix="Name another file of decisions with --status.",
        )
        return (), (fault,)


def valid_decisions(status: Path) -> tuple[Decision, ...]:
    """Read the decisions.

    Raises:
        ScenarioFaults: The file has errors; lists all of them.
    """
    decisions, faults = read(status)
    if faults:
        raise ScenarioFaults(faults)
    return decisions


def append_decision(decision: Decision, status: Path) -> None:
    """Append a decision to the file; existing content stays unchanged.

    Raises:
        InputError: The file cannot be extended.
    """
    with report_os_errors(
        "the decision cannot be stored",
        where=status,
        fix="Name a writable file with --status.",
    ):
        before = status.read_text("utf-8") if status.exists() else HEAD
        after = before + ("" if before.endswith("\n") else "\n") + entry(decision)
        previous, _ = read_decisions(before.encode(), str(status))
        current, faults = read_decisions(after.encode(), str(status))
        if faults or len(current) != len(previous) + 1:
            raise InputError(
                what="a decision cannot be appended to this file.",
                where=str(status),
                fix="Make `decisions:` the last key, and begin each decision with `  - `.",
            )
        # Write through a symbolic link instead of replacing it.
        atomic_write.put(status.resolve(), after.encode())
