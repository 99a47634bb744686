"""What a run of `corebound tune` records, so that its race can be replayed from its launches."""

from msgspec import Struct

from corebound.bounded_numbers import Amount, Count
from corebound.scenario.objectives import Objective

# The share of a budget that a race has; the rest is for the fresh launches of the finalists.
RACE_SHARE = 0.7
# Why a configuration was not launched at all.
NO_TIME = "no time left in the budget"


class RaceRule(Struct, frozen=True, kw_only=True):
    """How a race is run.

    Attributes:
        margin: How much faster than the winner another configuration may be, as a share.
        error: The probability that one is, at most.
        max_blocks: The race ends after this many blocks.
        confirm_blocks: How many more blocks launch the finalists.
        budget_s: The race ends before a block whose launches would have taken more than this many
            seconds together with all before; None: no limit.
        cap: A first launch that takes this many times as long as the shortest one is ended.
        screen_iterations: With a budget, short launches of so many iterations choose who races;
            0: all do.
    """

    margin: Amount = 0.02
    error: Amount = 0.05
    max_blocks: Count = 30
    confirm_blocks: Count = 6
    budget_s: Amount | None = None
    cap: Amount = 10.0
    screen_iterations: Count = 0

    @property
    def whole_budget_s(self) -> float | None:
        """The time for the race and the fresh launches; None: no limit."""
        return None if self.budget_s is None else self.budget_s / RACE_SHARE


class NotTried(Struct, frozen=True, kw_only=True):
    """A configuration, or several, that a race left out before it began, and why."""

    name: str
    reason: str


class RaceSetup(Struct, frozen=True, kw_only=True):
    """What a run of `corebound tune` races for.

    Attributes:
        rule: How the race is run.
        not_tried: What was left out. Cells that the host cannot hold are recorded as skipped, and
            duplicates as those of any run.
        verifies: The id of the run whose recommendation this one measures again, or through
            files that set it; None for a race.
        recommended: The key of the cell that it recommended; None for a race.
        load: The parameters of the workload that the scenario varies and that this race keeps,
            each with its value, such as the batch size.
    """

    objective: Objective
    rule: RaceRule
    not_tried: tuple[NotTried, ...] = ()
    verifies: str | None = None
    recommended: str | None = None
    load: tuple[tuple[str, str], ...] = ()
