"""The file in the repository that keeps what people decided about regressions."""

from __future__ import annotations

from pathlib import Path

from corebound.errors import Fault, InputError, ScenarioFaults, refusals_told
from corebound.records import atomic_write
from corebound.records.decisions import HEAD, Decision, entry, read_decisions

STATUS = Path("reports/regressions.yaml")


def read(status: Path) -> tuple[tuple[Decision, ...], tuple[Fault, ...]]:
    """What was decided, and what is wrong with the file; nothing where there is none."""
    try:
        return read_decisions(atomic_write.read(status), str(status))
    except FileNotFoundError:
        return (), ()
    except OSError as error:
        fault = Fault(
            file=str(status),
            line=None,
            what=f"it cannot be read: {error.strerror}.",
            mend="Name the file of decisions with --status.",
        )
        return (), (fault,)


def decided(status: Path) -> tuple[Decision, ...]:
    """What was decided.

    Raises:
        ScenarioFaults: everything that is wrong with the file.
    """
    decisions, faults = read(status)
    if faults:
        raise ScenarioFaults(faults)
    return decisions


def add(decision: Decision, status: Path) -> None:
    """Add a decision to the end of the file; what is there stays as it is.

    Raises:
        InputError: the file cannot be added to.
    """
    with refusals_told(
        "the decision cannot be kept",
        where=status,
        mend="Name a file that can be written with --status.",
    ):
        before = status.read_text("utf-8") if status.exists() else HEAD
        after = before + ("" if before.endswith("\n") else "\n") + entry(decision)
        was, _ = read_decisions(before.encode(), str(status))
        now, faults = read_decisions(after.encode(), str(status))
        if faults or len(now) != len(was) + 1:
            raise InputError(
                what="nothing can be added at the end of this file.",
                where=str(status),
                mend="Let `decisions:` be its last key, each decision begun with `  - `.",
            )
        # A link stays one.
        atomic_write.put(status.resolve(), after.encode())
