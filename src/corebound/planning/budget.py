"""What a time budget holds: whose block is next, and how long a launch may take.

The forecast of a run and the runner use the same functions, so that what is said before a run is
what it does.
"""

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

# A launch that a budget ends counts if each worker has so many iterations.
LEAST_ITERATIONS = 3


class Turns(Struct, frozen=True, kw_only=True):
    """How far a scenario is.

    Attributes:
        wanted: The blocks that it is to have.
        block_s: What a block takes, in seconds.
        least_block_s: What it takes if each launch has just enough iterations to count.
        turns: The number of blocks before the next scenario's turn, after the first block.
    """

    blocks: int
    wanted: int
    block_s: float
    least_block_s: float = 0.0
    turns: int = 1

    def fits(self, left_s: float) -> bool:
        """Whether the rest of a budget holds its next block; launches of a first one may be cut."""
        return (self.block_s if self.blocks else self.least_block_s) <= left_s


def next_turn(scenarios: Sequence[Turns], left_s: float) -> int | None:
    """The scenario whose block is launched next; None if none needs one.

    Breadth first: no scenario has a second block before all that fit have a first one. Earlier
    scenarios come first, and those whose block does not fit into the rest come last.

    Args:
        scenarios: The scenarios in the order of their turns.
        left_s: The rest of the budget, in seconds; infinite without one.
    """
    unfinished = [
        index for index, scenario in enumerate(scenarios) if scenario.blocks < scenario.wanted
    ]

    def order(index: int) -> tuple[bool, bool, int, int]:
        scenario = scenarios[index]
        return (
            not scenario.fits(left_s),
            scenario.blocks > 0,
            scenario.blocks // scenario.turns,
            index,
        )

    return min(unfinished, key=order, default=None)


def blocks_within(scenarios: Sequence[Turns], left_s: float) -> tuple[int, ...]:
    """How many more blocks each scenario has until all are finished or the budget ends.

    The first blocks of all scenarios share the budget if it does not hold them whole. For the
    arguments see `next_turn`.
    """
    if math.isinf(left_s):
        return tuple(max(scenario.wanted - scenario.blocks, 0) for scenario in scenarios)
    now = list(scenarios)
    cut_s = left_s
    for index, scenario in enumerate(scenarios):
        if scenario.blocks == 0 < scenario.wanted and scenario.fits(cut_s):
            cut_s -= scenario.least_block_s
            left_s -= scenario.block_s
            now[index] = replace(scenario, blocks=1)
    while (turn := next_turn(now, left_s)) is not None and now[turn].fits(left_s):
        left_s -= now[turn].block_s
        now[turn] = replace(now[turn], blocks=now[turn].blocks + 1)
    return tuple(
        after.blocks - scenario.blocks for scenario, after in zip(scenarios, now, strict=True)
    )


def fair_share_s(left_s: float, own: int, others: Iterable[tuple[int, float]]) -> float:
    """How long a launch may take so that no other launch loses its share, in seconds.

    Every launch may take equally long. What some do not need is shared by the others.

    Args:
        left_s: The rest of the budget, in seconds.
        own: How many launches like this one the rest is to hold, with this one.
        others: The number of other launches, and what each is expected to take, in seconds.

    Source: max-min fairness, Bertsekas & Gallager, "Data networks" (1992), section 6.5.2.

    >>> fair_share_s(30, 3, [(3, 2.0)]), fair_share_s(30, 1, [(1, 100.0)])
    (8.0, 15.0)
    """
    others = sorted(others, key=lambda other: other[1])
    number = own + sum(launches for launches, _ in others)
    for launches, launch_s in others:
        if launch_s * number >= left_s:
            break
        left_s -= launches * launch_s
        number -= launches
    return left_s / max(number, 1)
