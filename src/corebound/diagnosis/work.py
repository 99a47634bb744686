"""Rules on the work itself: its operators, its checkpoints, its BLAS."""

from __future__ import annotations

import re

from corebound.diagnosis.evidence import CellEvidence, Evidence, settings
from corebound.diagnosis.finding import Finding
from corebound.model.profile import OperatorProfile
from corebound.model.wire import Operator
from corebound.units import counted, duration, percent, ratio

# Beyond half of a step one type of operator is the whole story, as the page's tables have it.
DOMINANT_SHARE = 0.5
# In the hourglass study a cheaper generator behind dropout took a step from 360 ms to 47;
# from a tenth on, doing without is more than the intervals of most scenarios are wide.
RANDOM_SHARE = 0.1
_RANDOM = re.compile(r"bernoulli|random|dropout|uniform_?$|normal_$|philox", re.IGNORECASE)
_NORMALISES = re.compile(r"batch_norm|layer_norm", re.IGNORECASE)
# A choice: what a crash would lose is worth about that much of the time.
CHECKPOINT_SHARE = 0.1


def random_numbers(one: CellEvidence, _: Evidence) -> Finding | None:
    """A generator of random numbers that takes a good part of a step: dropout's, mostly."""
    found = _shares(one.profile)
    listed = [(each, share) for each, share in found if _is_random(each.type)]
    whole = sum(share for _, share in listed)
    if not listed or whole < RANDOM_SHARE:
        return None
    top = max(listed, key=lambda pair: pair[1])[0]
    return Finding(
        rule="random-numbers",
        tone="warn",
        what=f"Random numbers take {percent(whole, 0)} of the step, {top.type} most of it.",
        evidence=tuple(_line(each, share) for each, share in listed),
        remedy="Draw fewer or cheaper numbers: one mask for several layers or steps, a mask of"
        " bytes in place of floats, a simpler generator; leave dropout out where batch"
        " normalisation regularises already.",
        cells=(one.cell,),
        times_ratio=1 / (1 - min(whole, 0.99)),
    )


def operator_dominates(one: CellEvidence, _: Evidence) -> Finding | None:
    """One type of operator that takes most of a step."""
    found = _shares(one.profile)
    top = max(found, key=lambda pair: pair[1], default=None)
    if top is None or top[1] <= DOMINANT_SHARE or _is_random(top[0].type):
        return None
    operator, share = top
    return Finding(
        rule="operator-dominates",
        tone="plain",
        what=f"{operator.type} alone takes {percent(share, 0)} of the step.",
        evidence=(_line(operator, share),),
        remedy="Whatever makes the step faster has to make this operator faster: other threads"
        " or another type of numbers for it, another layout of its data, another library.",
        cells=(one.cell,),
        times_ratio=1.0,
    )


def checkpoint_share(one: CellEvidence, among: Evidence) -> Finding | None:
    """Training that waits for its own checkpoints."""
    every = number(one.value("every"))
    never = [other for other in among.peers(one, ("every",)) if other.value("every") == "0"]
    loss = among.worst_loss(one, never)
    if not every or loss is None or 1 - 1 / loss.ratio < CHECKPOINT_SHARE:
        return None
    share = 1 - 1 / loss.ratio
    # What a save costs stays; n times as seldom, it is a share s/n of the rest.
    seldom = every * max(2, round((loss.ratio - 1) / CHECKPOINT_SHARE * (1 - CHECKPOINT_SHARE)))
    often = "every step" if every == 1 else f"every {every} steps"
    return Finding(
        rule="checkpoint-share",
        tone="bad",
        what=f"Saving {often} takes {percent(share, 0)} of the time:"
        f" {ratio(loss.ratio)} as long as without.",
        evidence=(f"every {every}: {time_of(one)}", f"never: {time_of(loss.than)}"),
        remedy=f"Save every {seldom} steps or more seldom, which brings it to about"
        f" {percent(CHECKPOINT_SHARE, 0)}, or save from another thread while training goes on.",
        cells=(one.cell,),
        times_ratio=loss.ratio,
    )


def slower_blas(one: CellEvidence, among: Evidence) -> Finding | None:
    """The slower of the BLAS libraries that were measured for the same products."""
    own = _blas(one)
    if own is None:
        return None
    others = [
        other
        for other in among.peers(one, ("blas", "environment"))
        if (name := _blas(other)) is not None
        and name.split()[0] != own.split()[0]
        and other.cell.framework == one.cell.framework
    ]
    loss = among.worst_loss(one, others)
    if loss is None:
        return None
    best = _blas(loss.than)
    return Finding(
        rule="slower-blas",
        tone="bad",
        what=f"{own} takes {ratio(loss.ratio)} as long as {best} for the same products.",
        evidence=(f"{own}: {time_of(one)}", f"{best}: {time_of(loss.than)}"),
        remedy=f"Use the other on this processor: `{settings(loss.than.cell, one.cell)}`.",
        cells=(one.cell,),
        times_ratio=loss.ratio,
    )


def _shares(profile: OperatorProfile | None) -> list[tuple[Operator, float]]:
    """The operators of a step with their shares of it, or of all operators; largest first."""
    if profile is None:
        return []
    whole_ns = profile.step_ns or sum(each.total_ns for each in profile.operators)
    if not whole_ns:
        return []
    listed = ((each, each.total_ns / whole_ns) for each in profile.operators)
    return sorted(listed, key=lambda pair: -pair[1])


def _is_random(name: str) -> bool:
    return bool(_RANDOM.search(name)) and not _NORMALISES.search(name)


def _line(operator: Operator, share: float) -> str:
    return (
        f"{operator.type}: {duration(operator.total_ns)} an iteration in"
        f" {counted(operator.calls)} calls, {percent(share, 0)}"
    )


def time_of(one: CellEvidence) -> str:
    """Its median for a line of evidence."""
    return "–" if one.summary.median_ns is None else duration(one.summary.median_ns)


def number(text: str | None) -> int | None:
    """A value of an axis that is a whole number; None where it is none."""
    return int(text) if text is not None and text.isdecimal() else None


def _blas(one: CellEvidence) -> str | None:
    names = [worker.blas for launch in one.ok for worker in launch.workers if worker.blas]
    return names[0] if names else None
