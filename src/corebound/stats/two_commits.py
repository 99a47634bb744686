"""Two commits of the project under test, over a whole suite: which cells became slower."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.stats.compare import Comparison, Verdict
from corebound.stats.multiplicity import benjamini_hochberg


class Pair(Struct, frozen=True, kw_only=True):
    """A cell at two commits.

    Attributes:
        scenario: The scenario's name, without what the comparison added to it.
        cell: The cell's key, without its commit.
        base_ns, head_ns: Time of an iteration at each; None where it has no figure.
        comparison: Of head with base; None where one has no figure.
        margin: What counts as no difference.
        missing: Why a side has no figure, in words; empty where both have.
        cpu_ratio: CPU time of an iteration at head, as a multiple of that at base; None where
            one is not known. No verdict rests on it.
    """

    scenario: str
    cell: str
    base_ns: float | None
    head_ns: float | None
    comparison: Comparison | None
    margin: float
    missing: tuple[str, ...]
    cpu_ratio: float | None = None

    @property
    def cpu_differs(self) -> bool:
        """Whether CPU time changed by what the interval of wall time does not hold.

        Wall time holds waiting and what else ran on the host as well.
        """
        bounds = self.comparison.interval if self.comparison else None
        return (
            bounds is not None
            and self.cpu_ratio is not None
            and not bounds.low <= 1 / self.cpu_ratio <= bounds.high
        )


class Judged(Struct, frozen=True, kw_only=True):
    """A pair, and what it is as one of many.

    `verdict` is None without a comparison. `is_regression`: slower by more than the
    margin at the best guess, and a finding of the whole suite.
    """

    pair: Pair
    verdict: Verdict | None
    is_regression: bool


def judge(pairs: Sequence[Pair]) -> tuple[Judged, ...]:
    """Give each pair its verdict; `faster` and `slower` have to hold among all of them.

    Of the differences told, one in twenty at most is none (Benjamini & Hochberg). The
    others of the pairs whose own interval excludes 1 are `undecided`.
    """
    findings = benjamini_hochberg(
        [pair.comparison.p_value if pair.comparison else None for pair in pairs]
    )
    return tuple(_judged(pair, found=found) for pair, found in zip(pairs, findings, strict=True))


def _judged(pair: Pair, *, found: bool) -> Judged:
    compared = pair.comparison
    if compared is None:
        return Judged(pair=pair, verdict=None, is_regression=False)
    verdict = compared.verdict
    if verdict in {"faster", "slower"} and not found:
        verdict = "undecided"
    is_regression = verdict == "slower" and compared.speedup_ratio < 1 / (1 + pair.margin)
    return Judged(pair=pair, verdict=verdict, is_regression=is_regression)
