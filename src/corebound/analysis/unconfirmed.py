"""The largest difference in a scenario where nothing is decided, and what decides it."""

import math
from typing import Literal

from msgspec import Struct

from corebound.analysis import suggested_commands, wording
from corebound.analysis.effects import Effect, effects_of, keeps_baseline, likely_effects
from corebound.analysis.forecast import time_of_launch
from corebound.analysis.scenario_result import CellResult, ScenarioResult, findings
from corebound.scenario.compared_axis import compared_axis


class Unconfirmed(Struct, frozen=True, kw_only=True):
    """The largest difference that was seen in a scenario where nothing is decided.

    Attributes:
        effect: The two configurations, and their comparison.
        reason: Why it is not decided; `correction`: among so many comparisons it may be chance.
        cause: What the diagnosis of the slower one found; empty if no rule applies.
        launches: How many of each are expected to decide.
        command: Launches both as often as that.
        duration_s: The time that this takes, judged by their launches so far.
    """

    effect: Effect
    reason: wording.OpenReason | Literal["correction"]
    cause: str
    launches: int
    command: suggested_commands.CommandLine
    duration_s: float

    @property
    def looks(self) -> str:
        """What was seen: `Running with 1 thread looks 450× faster than the default.`."""
        effect = self.effect
        looks = wording.relative_speed(
            effect.comparison.speedup_ratio, words=effect.cell.cell.words_in_sentence
        )
        return wording.capital(f"{effect.subject} looks {looks} than {effect.reference}.")

    @property
    def says(self) -> str:
        """The same, with what both configurations have in common: `12 workers: running with …`."""
        title, looks = self.effect.title, self.looks
        return wording.capital(f"{title}: {looks[:1].lower()}{looks[1:]}") if title else looks

    @property
    def basis(self) -> str:
        """Why it is not decided: `One launch each`."""
        return why_open(self.effect, self.reason)

    @property
    def remedy(self) -> str:
        """What decides it: `Confirm with 6 launches of each, about 4 minutes`."""
        launches = wording.count(self.launches, "launch", "launches")
        return f"Confirm with {launches} of each, {wording.about_time(self.duration_s)}"

    @property
    def text(self) -> str:
        """All of it, with the cause and the command that decides it."""
        cause = f" {self.cause}." if self.cause else ""
        return f"{self.says}{cause} {self.basis}. {self.remedy}: `{self.command.line}`"


def why_open(effect: Effect, reason: wording.OpenReason | Literal["correction"]) -> str:
    """Why an effect is not decided, in words: `One launch each`."""
    comparison = effect.comparison
    launches = [len(side.summary.launches) for side in (effect.cell, effect.other)]
    if reason == "one launch":
        return "One launch each" if max(launches) == 1 else "One launch of one of the two"
    if reason == "correction" and not effect.may_lead:
        return f"Only {wording.count(min(launches), 'launch', 'launches')} of each"
    bounds = wording.compared_bounds(comparison)
    if reason == "spread" and comparison.interval is None:
        return wording.capital(bounds)
    reasons = {
        "disturbance": "Other programs disturbed the slower one",
        "budget": "The budget ended",
        "correction": "Not significant after correction",
        "spread": f"95 % CI {bounds}",
    }
    return f"{reasons[reason]}, with {min(launches)} launches of each"


# What is smaller than this in one launch each, or would so often be seen by chance, is not worth a
# sentence.
_SEEN_ONCE_RATIO = 1.2
_SEEN_BY_CHANCE = 0.3
# So many launches at least confirm a difference that looks large, if nothing tells how many.
_CONFIRMING = 6


def unconfirmed(result: ScenarioResult) -> Unconfirmed | None:
    """The largest difference in a scenario where nothing is decided; None if none was seen.

    One that is significant after too few launches for a headline is not decided either. What may as
    well be noise is none. Comparisons of commits have sentences of their own.
    """
    ranked = effects_of(result)
    is_decided = any(effect.cell.cell.id in result.decided and effect.may_lead for effect in ranked)
    if is_decided or keeps_baseline(ranked) or compared_axis(result.source.document):
        return None
    effects = [
        effect
        for effect in ranked
        if effect.is_actionable and _is_seen(effect, result.measure.margin)
    ]
    if not effects:
        return None
    effect = max(likely_effects(effects) or effects, key=lambda effect: effect.distance)
    sides = effect.cell, effect.other
    # If nothing tells how many are needed, fewer than those that did not decide are too few.
    undecided = min(len(side.summary.launches) for side in sides)
    likely_enough = max(_CONFIRMING, result.measure.launches.min, undecided)
    needed = effect.comparison.launches_needed or likely_enough
    launches = min(needed, suggested_commands.MOST_LAUNCHES)
    line = f"{suggested_commands.cell_command(result, effect.cell).line} --launches {launches}"
    return Unconfirmed(
        effect=effect,
        reason=result.open_reason(effect.cell) or "correction",
        cause=cause_of(result, effect.slower, clause=True),
        launches=launches,
        command=suggested_commands.CommandLine(line),
        duration_s=launches * sum(time_of_launch(side.launches) or 0.0 for side in sides),
    )


def _is_seen(effect: Effect, margin: float) -> bool:
    p_value = effect.comparison.p_value
    if p_value is None:
        return effect.distance >= math.log(_SEEN_ONCE_RATIO)
    return effect.distance > math.log1p(margin) and p_value <= _SEEN_BY_CHANCE


def cause_of(result: ScenarioResult, cell: CellResult, *, clause: bool = False) -> str:
    """The likely cause of a cell's time, which diagnosis found; empty without one.

    Args:
        result: The cell's scenario.
        clause: Whether to leave out what it costs, for the end of a sentence.
    """
    key = cell.cell.key
    found = (each.what for each in findings(result) if key in {own.key for own in each.cells[:1]})
    what = next(found, "")
    return what.partition(": ")[0].rstrip(".") if clause else what
