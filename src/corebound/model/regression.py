"""What people decided about a change, and what a re-run said of it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

# Of the file of decisions, and of those that keep confirmations.
DECISIONS_SCHEMA = 1
CONFIRMATION_SCHEMA = 1

Direction = Literal["up", "down"]
State = Literal["open", "accepted", "fixed"]
# What a re-run says of a step: `undecided` may be asked again, and `impossible` is one that
# cannot be made here.
Answer = Literal["confirmed", "refuted", "undecided", "impossible"]


class Place(Struct, frozen=True, kw_only=True):
    """Where a change is: between two points of a series.

    Attributes:
        series: The series' id.
        direction: Whether figures went up or down.
        after: Moment of the last point surely before it, ISO 8601 in UTC.
        by: Moment of the first point surely after it.
    """

    series: str
    direction: Direction
    after: str
    by: str

    def overlaps(self, other: Place) -> bool:
        """Whether the two may be one change: where it lies is told better from night to night.

        A change comes after the one moment and no later than the other, so two of which
        one ends where the other begins are two.
        """
        return (
            self.series == other.series
            and self.direction == other.direction
            and max(self.after, other.after) < min(self.by, other.by)
        )

    def covers(self, other: Place) -> bool:
        """Whether whatever is at the other place is at this one."""
        return (
            self.series == other.series
            and self.direction == other.direction
            and self.after <= other.after
            and other.by <= self.by
        )


class Decision(Struct, frozen=True, kw_only=True):
    """What somebody decided about a change.

    Attributes:
        id: The change's, as it was shown then.
        state: `open` takes an earlier decision back.
        because: Why, in words.
        at: When, ISO 8601 in UTC.
        place: Where the change is.
        line: In the file of decisions, from 1.
    """

    id: str
    state: State
    because: str
    at: str
    place: Place
    line: int | None = None


class Confirmation(Struct, frozen=True, kw_only=True):
    """What a re-run said of a change.

    Attributes:
        schema: `CONFIRMATION_SCHEMA` of the corebound that wrote it.
        id: The change's, as it was then.
        place: Where the change is.
        answer: What the re-run said.
        both: Whether both commits were measured, launched in turns; else the present
            state was, and held against the good nights.
        how: What was held against what, or why nothing could be, in words.
        at: When, ISO 8601 in UTC.
        seen: Moment of the series' last point then.
        run: The re-run's id; None where none was made.
        ratio: What it measured: the present figure over the good one; None likewise.
        interval: Of that ratio, 95 %; None where there is none.
    """

    schema: int
    id: str
    place: Place
    answer: Answer
    both: bool
    how: str
    at: str
    seen: str
    run: str | None
    ratio: float | None
    interval: tuple[float, float] | None
