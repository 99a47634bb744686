"""What launches through the files of `corebound tune --emit` show of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from corebound.analysis.tuning_text import times
from corebound.planning.artefacts import Artefact
from corebound.records.launch_record import Launch
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


class Proof(Struct, frozen=True, kw_only=True):
    """An artefact, and what is known of it.

    Attributes:
        artefact: The artefact.
        state: What is known.
        evidence: Why, in a sentence.
        comparison: Its launches compared with those of the race's own command.
    """

    artefact: Artefact
    state: State
    evidence: str
    comparison: Comparison | None = None


def launched_proof(
    artefact: Artefact, launches: Sequence[Launch], *, warmup: Warmup, margin: float
) -> Proof:
    """The proof of an artefact from launches through it, beside those of the race's command.

    Args:
        artefact: The artefact.
        launches: The launches of all artefacts.
        warmup: `Measure.warmup`.
        margin: `Measure.margin`.
    """
    direct, through = (
        [
            launch
            for launch in launches
            if dict(launch.cell.axes).get(THROUGH_AXIS) == name and not is_refused(launch)
        ]
        for name in (DIRECT, artefact.kind)
    )
    if not direct or not through:
        return Proof(artefact=artefact, state="written", evidence="Not launched.")
    failed = next((launch for launch in through if launch.status != "ok"), None)
    if failed is not None:
        evidence = f"A launch through it {failed.status}: {failed.reason}"
        return Proof(artefact=artefact, state="differs", evidence=evidence)
    comparison = compare_expected(
        summarise(through[0].cell, through, warmup),
        summarise(direct[0].cell, direct, warmup),
        margin=margin,
    )
    evidence = (
        f"{len(through)} of {len(through)} launches through it ran on the requested CPUs"
        " with the requested threads."
    )
    if comparison is None or comparison.interval is None:
        evidence += " They are too few to compare its speed."
        return Proof(artefact=artefact, state="written", evidence=evidence)
    interval = comparison.interval
    differs = interval.high < 1 / (1 + margin) or interval.low > 1 + margin
    if differs:
        evidence += f" But it was {times(comparison, 'latency')} than the winner's own command."
    return Proof(
        artefact=artefact,
        state="differs" if differs else "launched",
        evidence=evidence,
        comparison=comparison,
    )
