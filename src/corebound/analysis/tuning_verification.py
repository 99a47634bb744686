"""Whether a recommendation of `corebound tune` still holds, by later launches of its finalists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from corebound.analysis.tuning import TuneResult
from corebound.analysis.tuning_text import names
from corebound.analysis.wording import capital
from corebound.scenario.cell import Cell

Answer = Literal["holds", "lost", "inconclusive"]


class Verification(Struct, frozen=True, kw_only=True):
    """A recommendation that was measured again.

    Attributes:
        before, now: The race, and the new launches of its finalists.
        recommended: What the race recommended.
        better: What beats it now, by more than the margin; None if nothing does.
        answer: Whether the recommendation holds. A configuration other than the default must still
            be faster than the default; the default must not be beaten.
    """

    before: TuneResult
    now: TuneResult
    recommended: Cell
    better: Cell | None
    answer: Answer

    @property
    def text(self) -> str:
        """The answer in a sentence or two."""
        known = names(self.now)
        name = known[self.recommended.key]
        if self.answer == "holds":
            return f"The recommendation holds: {name}."
        if self.now.advice == "unfinished":
            return f"Inconclusive: too few launches of {name} or of what it is compared with."
        if self.answer == "inconclusive":
            return f"Inconclusive: {name} was not clearly better than the default this time."
        better = f" {capital(known[self.better.key])} is better now." if self.better else ""
        return f"{capital(name)} is no longer recommended.{better} Run `corebound tune` again."


def verification(before: TuneResult, now: TuneResult) -> Verification:
    """Compare new launches of a race's finalists with its recommendation.

    Raises:
        ValueError: The race recommends nothing.
    """
    if before.recommended is None:
        raise ValueError("the race recommends nothing")
    return Verification(
        before=before,
        now=now,
        recommended=before.recommended,
        better=_better(now),
        answer=_answer(before, now),
    )


def latest_verification(before: TuneResult, checks: Sequence[TuneResult]) -> Verification | None:
    """The latest complete check of all finalists; None without any.

    Args:
        before: The race.
        checks: Later launches of some of its cells, latest last.
    """
    if before.recommended is None or before.standing.finalists is None:
        return None
    finalists = {before.recommended.key, *before.standing.finalists.keys}
    # Others compare one configuration for all loads with the recommended one of each.
    complete = [
        check
        for check in checks
        if finalists.issubset(check.cells) and check.advice != "unfinished"
    ]
    return verification(before, complete[-1]) if complete else None


def _better(now: TuneResult) -> Cell | None:
    """The finalist that certainly beats the recommended one, by more than the margin; the best."""
    ratios = {
        one.cell.key: (one.comparison.speedup_ratio, one.cell)
        for one in now.confirmed
        if one.comparison is not None
        and one.comparison.interval is not None
        and one.comparison.interval.high < 1
        and one.comparison.speedup_ratio < 1 / (1 + now.tuning.rule.margin)
    }
    return min(ratios.values(), key=lambda pair: pair[0])[1] if ratios else None


def _answer(before: TuneResult, now: TuneResult) -> Answer:
    if now.advice == "unfinished":
        return "inconclusive"
    winner = now.confirmed[0] if now.confirmed else None
    if _better(now) is not None or winner is None or winner.summary.median_ns is None:
        return "lost"
    if before.advice != "change":
        return "holds"
    against = now.against(now.contest.default)
    verdict = against.verdict if against is not None else "faster"
    answers: dict[str, Answer] = {"faster": "holds", "inconclusive": "inconclusive"}
    return answers.get(verdict, "lost")
