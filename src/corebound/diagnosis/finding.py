"""What a rule found."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from corebound.model.plan import Cell

# `bad`: it was seen to cost time. `warn`: it was seen, what it costs was not.
# `plain`: nothing is wrong, but here is where time could be won.
Tone = Literal["bad", "warn", "plain"]


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that stands out in a scenario's records, and what mends it.

    Attributes:
        rule: The rule's name, as docs/diagnosis.md lists it.
        what: What was seen, in a sentence with figures; of the first of `cells`.
        evidence: The figures it rests on, a line each.
        remedy: The setting or the command that mends it.
        cells: Where it was seen, the worst first.
        times_ratio: How many times as long as need be it makes an iteration take,
            as far as that is known: what findings are ordered by.
        of_first: Whether the others of `cells` have other figures than the first.
    """

    rule: str
    tone: Tone
    what: str
    evidence: tuple[str, ...]
    remedy: str
    cells: tuple[Cell, ...]
    times_ratio: float
    of_first: bool = False
