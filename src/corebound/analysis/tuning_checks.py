"""What launches after a race show of its recommendation, and of the files that set it."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from corebound.analysis.tuning import TuneResult
from corebound.analysis.wording import change_text
from corebound.planning.artefacts import Artefact
from corebound.records.launch_record import Launch
from corebound.scenario.cell import Cell
from corebound.scenario.models import Warmup
from corebound.stats.comparison import Comparison, compare_expected
from corebound.stats.interference import is_refused
from corebound.stats.launch_summary import summarise

# Distinguishes the cells of a proof: by artefact, and `command` for the race's own command.
THROUGH_AXIS = "through"
DIRECT = "command"

# `launched`: its launches were as fast as the race's. `differs`: their speed certainly differs by
# more than the margin, or they failed.
# `checked`: only its syntax. `wrong`: its program rejects it. `written`: none of these.
State = Literal["launched", "differs", "checked", "wrong", "written"]

# Whether a recommendation holds.
Answer = Literal["holds", "lost", "inconclusive"]


class ArtefactProof(Struct, frozen=True, kw_only=True):
    """An artefact, and what is known of it.

    Attributes:
        evidence: Why, in a sentence.
        comparison: Its launches compared with those of the race's own command.
    """

    artefact: Artefact
    state: State
    evidence: str
    comparison: Comparison | None = None


def launched_proof(
    artefact: Artefact, launches: Sequence[Launch], *, warmup: Warmup, margin: float
) -> ArtefactProof:
    """The proof of an artefact from launches through it, beside those of the race's command.

    Args:
        launches: The launches of all artefacts.
        warmup: `Measure.warmup`.
        margin: `Measure.margin`.
    """
    direct, through = (
        [
            launch
            for launch in launches
            if dict(launch.cell.axes).get(THROUGH_AXIS) == name
            # The budget has no time for one that is dropped.
            and not (is_refused(launch) or launch.status == "dropped")
        ]
        for name in (DIRECT, artefact.kind)
    )
    if not direct or not through:
        return ArtefactProof(artefact=artefact, state="written", evidence="Not tested.")
    failed = next((launch for launch in through if launch.status != "ok"), None)
    if failed is not None:
        evidence = f"A launch through it {failed.status}: {failed.reason}"
        return ArtefactProof(artefact=artefact, state="differs", evidence=evidence)
    comparison = compare_expected(
        summarise(through[0].cell, through, warmup, within_run=True),
        summarise(direct[0].cell, direct, warmup, within_run=True),
        margin=margin,
    )
    evidence = (
        f"{len(through)} of {len(through)} launches through it ran on the requested CPUs"
        " with the requested threads."
    )
    if comparison is None or comparison.interval is None:
        evidence += " They are too few to compare its speed."
        return ArtefactProof(artefact=artefact, state="written", evidence=evidence)
    differs = comparison.interval.is_beyond(margin)
    if differs:
        evidence += f" But it was {change_text(comparison)} than the winner's own command."
    return ArtefactProof(
        artefact=artefact,
        state="differs" if differs else "launched",
        evidence=evidence,
        comparison=comparison,
    )


class Verification(Struct, frozen=True, kw_only=True):
    """A recommendation that was measured again.

    Attributes:
        before, now: The race, and the new launches of its finalists.
        better: What beats it now, by more than the margin; None if nothing does.
        answer: Whether the recommendation holds. A configuration other than the default must still
            be faster than the default; the default must not be beaten.
    """

    before: TuneResult
    now: TuneResult
    recommended: Cell
    better: Cell | None
    answer: Answer


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
        checks: Later launches of some of its cells, latest last.
    """
    if before.recommended is None or before.race_state.finalists is None:
        return None
    finalists = {before.recommended.key, *before.race_state.finalists.keys}
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
        finalist.cell.key: (finalist.comparison.speedup_ratio, finalist.cell)
        for finalist in now.confirmed
        if finalist.comparison is not None
        and finalist.comparison.interval is not None
        and finalist.comparison.interval.high < 1
        and finalist.comparison.speedup_ratio < 1 / (1 + now.tuning.rule.margin)
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
    against = now.against(now.raced.default)
    verdict = against.verdict if against is not None else "faster"
    answers: dict[str, Answer] = {"faster": "holds", "inconclusive": "inconclusive"}
    return answers.get(verdict, "lost")
