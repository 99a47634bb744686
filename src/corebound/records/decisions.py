"""Decisions about changes, kept in an append-only YAML file, and the results of re-runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct

from corebound.errors import Fault, InputError, ScenarioFaults, report_os_errors
from corebound.records import atomic_write
from corebound.scenario.fault_wording import printable
from corebound.scenario.yaml_reader import Node, read_yaml

# The schema of the decisions file, and of files that hold confirmations.
DECISIONS_SCHEMA = 1
CONFIRMATION_SCHEMA = 1

Direction = Literal["up", "down"]
State = Literal["open", "accepted", "fixed"]
# The result of a re-run: `inconclusive` can be repeated; `impossible` means that the re-run cannot
# be made on this host.
Answer = Literal["confirmed", "refuted", "inconclusive", "impossible"]


class ChangeLocation(Struct, frozen=True, kw_only=True):
    """Where a change is: between two points of a series.

    Attributes:
        after: Moment of the last point certainly before it, ISO 8601 in UTC.
        by: Moment of the first point certainly after it.
    """

    series: str
    direction: Direction
    after: str
    by: str

    def overlaps(self, other: ChangeLocation) -> bool:
        """Whether the two may be the same change.

        The location of a change gets more precise as points are added.
        A change comes after one moment and no later than the other. So two are different
        changes if one ends where the other begins.
        """
        return (
            self.series == other.series
            and self.direction == other.direction
            and max(self.after, other.after) < min(self.by, other.by)
        )

    def covers(self, other: ChangeLocation) -> bool:
        """Whether this location contains the other one."""
        return (
            self.series == other.series
            and self.direction == other.direction
            and self.after <= other.after
            and other.by <= self.by
        )


class Decision(Struct, frozen=True, kw_only=True):
    """A person's decision about a change.

    Attributes:
        id: The change's id, as shown at that time.
        state: `open` revokes an earlier decision.
        at: When, ISO 8601 in UTC.
        line: Line in the decisions file, from 1.
    """

    id: str
    state: State
    because: str
    at: str
    location: ChangeLocation
    line: int | None = None


class Confirmation(
    Struct,
    frozen=True,
    kw_only=True,
    # The names in stored confirmations.
    rename={"location": "place", "last_point": "seen"},
):
    """The result of a re-run for a change.

    Attributes:
        schema: `CONFIRMATION_SCHEMA` of the corebound that wrote it.
        id: The change's id at that time.
        both: Whether both commits were measured, launched in turns. Otherwise the present
            state was measured and compared with the good points.
        how: What was compared with what, or why nothing could be, in words.
        at: When, ISO 8601 in UTC.
        last_point: Moment of the series' last point at that time.
        run: The re-run's id; None if there was none.
        ratio: The measured ratio: the present value over the good one; None if there was none.
        interval: The 95 % interval of that ratio; None if there is none.
    """

    schema: int
    id: str
    location: ChangeLocation
    answer: Answer
    both: bool
    how: str
    at: str
    last_point: str
    run: str | None
    ratio: float | None
    interval: tuple[float, float] | None


HEAD = f"""\
# Decisions about regressions: `corebound regressions --accept ID --because TEXT`,
# `--fixed ID` and `--reopen ID` add to it. The last decision about a change counts.
# You may add comments; corebound only appends to this file.
schema: {DECISIONS_SCHEMA}
decisions:
"""
_STATES: tuple[State, ...] = get_args(State)
_DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
_KEYS = ("change", "status", "because", "at", "series", "direction", "after", "by")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))?")


def read_decisions(data: bytes, file: str) -> tuple[tuple[Decision, ...], tuple[Fault, ...]]:
    """Read the decisions file.

    Returns:
        The valid decisions in their order, and all faults of the file.
    """
    root, syntax = read_yaml(data, file)
    faults = list(syntax)
    if root is None:
        return (), tuple(faults)

    def report(node: Node, what: str, fix: str) -> None:
        faults.append(Fault(file=file, line=node.line, what=what, fix=fix))

    decisions = []
    for node in _decisions(root, report):
        known = len(faults)
        decision = _decision(node, report)
        if decision is not None and len(faults) == known:
            decisions.append(decision)
    return tuple(decisions), tuple(sorted(faults, key=lambda fault: fault.line or 0))


def entry(decision: Decision) -> str:
    """A decision as text to append to the file.

    Strings are written in double quotes and escaped.
    """
    location = decision.location
    values = (
        ("change", decision.id),
        ("status", decision.state),
        ("because", decision.because),
        ("at", decision.at),
        ("series", location.series),
        ("direction", location.direction),
        ("after", location.after),
        ("by", location.by),
    )
    lines = [f'{name}: "{"".join(map(_escaped, value))}"' for name, value in values]
    return "  - " + "\n    ".join(lines) + "\n"


def _escaped(character: str) -> str:
    if character in {'"', "\\"}:
        return f"\\{character}"
    # Characters that no editor shows must not be in the file, not even escaped.
    return character if character.isprintable() else "\ufffd"


# Reports a fault: where, what is wrong, and how to fix it.
_Report = Callable[[Node, str, str], None]


def _decisions(root: Node, report: _Report) -> Iterator[Node]:
    if not isinstance(root.value, dict):
        fix = "Delete the file, or restore an earlier version."
        report(root, "not a list of decisions.", fix)
        return
    for name, child in root.value.items():
        if name not in {"schema", "decisions"}:
            what = f"`{printable(name)}` is not a known key of this file."
            report(child, what, "Keep only `schema` and `decisions`.")
    schema = root.value.get("schema")
    if schema is None or schema.value != DECISIONS_SCHEMA or isinstance(schema.value, bool):
        what = f"`schema` is not {DECISIONS_SCHEMA}, the only supported version."
        report(schema or root, what, f"Write `schema: {DECISIONS_SCHEMA}`.")
        return
    listed = root.value.get("decisions")
    if listed is None or listed.value is None:
        return
    if not isinstance(listed.value, list):
        report(listed, "`decisions` is not a list.", "Write `- change: …`.")
        return
    yield from listed.value


def _decision(node: Node, report: _Report) -> Decision | None:
    """Parse one decision; None if it has a fault that leaves none."""
    if not isinstance(node.value, dict):
        if not node.flawed:
            report(node, "not a decision.", "Write `- change: …`.")
        return None
    for name, child in node.value.items():
        if name not in _KEYS:
            what = f"`{printable(name)}` is not a known key of a decision."
            report(child, what, f"Keys: {', '.join(_KEYS)}.")
    texts = {name: _text(node, name, report) for name in _KEYS}
    state = next((value for value in _STATES if value == texts["status"]), None)
    direction = next((value for value in _DIRECTIONS if value == texts["direction"]), None)
    for name, known, values in (("status", state, _STATES), ("direction", direction, _DIRECTIONS)):
        if known is None and texts[name]:
            what = f"`{name}: {printable(texts[name])}` is not a known value."
            report(node.nearest((name,)), what, f"Write one of: {', '.join(values)}.")
    for name in ("at", "after", "by"):
        if texts[name] and not _MOMENT.fullmatch(texts[name]):
            what = f"`{name}: {printable(texts[name])}` is not a date and time."
            report(node.nearest((name,)), what, "Write it as in 2026-03-01T02:00:00Z.")
    if state is None or direction is None:
        return None
    return Decision(
        id=texts["change"],
        state=state,
        because=texts["because"],
        at=texts["at"],
        location=ChangeLocation(
            series=texts["series"], direction=direction, after=texts["after"], by=texts["by"]
        ),
        line=node.line,
    )


def _text(node: Node, name: str, report: _Report) -> str:
    """A value as text, as written; empty if it is a fault."""
    child = node.child(name)
    if child is None:
        report(node, f"a decision has no `{name}`.", f"Add `{name}: …`.")
        return ""
    if child.flawed:
        return ""
    # YAML reads an id of digits alone as a number; the text as written is used.
    if isinstance(child.value, dict | list) or not child.text.strip():
        report(child, f"`{name}` is not a text.", "Write it in quotes.")
        return ""
    return child.text


DECISIONS_FILE = Path("reports/regressions.yaml")


def read_decisions_file(status: Path) -> tuple[tuple[Decision, ...], tuple[Fault, ...]]:
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
    decisions, faults = read_decisions_file(status)
    if faults:
        raise ScenarioFaults(faults)
    return decisions


def append_decisions(decisions: Sequence[Decision], status: Path) -> None:
    """Append decisions to the file; existing content stays unchanged.

    Raises:
        InputError: The file cannot be extended.
    """
    with report_os_errors(
        "the decision cannot be stored",
        where=status,
        fix="Name a writable file with --status.",
    ):
        before = atomic_write.read(status).decode("utf-8") if status.exists() else HEAD
        after = before + ("" if before.endswith("\n") else "\n")
        after += "".join(map(entry, decisions))
        previous, _ = read_decisions(before.encode(), str(status))
        current, faults = read_decisions(after.encode(), str(status))
        if faults or len(current) != len(previous) + len(decisions):
            raise InputError(
                what="a decision cannot be appended to this file.",
                where=str(status),
                fix="Make `decisions:` the last key, and start each decision with `  - `.",
            )
        atomic_write.put(status, after.encode())
