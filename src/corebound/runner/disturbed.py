"""Launches that something outside disturbed: marked always, refused now and then."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from corebound.launch.outcome import Outcome
from corebound.model.record import GOES_ON, Kind
from corebound.model.telemetry import Disturbance
from corebound.stats.disturbance import disturbance, is_too_much, marked
from corebound.stats.summary import Warmup, counted_from

Judged = tuple[Outcome, Disturbance | None]

_MEND = f"{GOES_ON} `corebound doctor` names what else uses this host."


def judged(
    outcomes: Sequence[Outcome],
    *,
    may_refuse: bool,
    warmup: Warmup = "auto",
    kind: Kind = "measure",
) -> tuple[Judged, ...]:
    """Mark the iterations that were disturbed, and refuse launches with too many of them.

    Of launches that alternated all are refused if one is: they are of use together only.

    Args:
        outcomes: What became of one launch, or of several that alternated.
        may_refuse: Whether they may be launched again.
        warmup: `Measure.warmup`: only iterations after it tell whether there are too many.
        kind: What they are for.

    Returns:
        For each its outcome, `invalid` if refused, and what disturbed it.
    """
    found = tuple(_marked(outcome, warmup) for outcome in outcomes)
    if may_refuse and any(_is_spoilt(*one, kind) for one in found):
        return tuple(_refused(*one, kind) for one in found)
    return found


def _marked(outcome: Outcome, warmup: Warmup) -> Judged:
    host = outcome.host
    if host is None:
        return outcome, None
    workers = tuple(replace(one, disturbed=marked(one, host)) for one in outcome.workers)
    # Looking for the warm-up takes a while, and most launches are not disturbed.
    is_hit = any(one.disturbed for one in workers)
    warm = [counted_from(one, warmup) for one in workers] if is_hit else ()
    return replace(outcome, workers=workers), disturbance(workers, host, warm=warm)


def _is_spoilt(outcome: Outcome, found: Disturbance | None, kind: Kind) -> bool:
    """Whether a disturbance decided what became of it; one that was stopped may be out of time."""
    if outcome.status == "timed-out":
        return found is not None and "suspension" in found.by
    return outcome.status == "ok" and is_too_much(found, outcome.host, kind)


def _refused(outcome: Outcome, found: Disturbance | None, kind: Kind) -> Judged:
    is_spoilt = _is_spoilt(outcome, found, kind)
    if outcome.status != "ok" and not is_spoilt:
        return outcome, found
    if is_spoilt and found is not None:
        reason = f"it was disturbed from outside: {'; '.join(found.evidence)}."
    else:
        reason = "a launch that it alternated with was disturbed from outside."
    found = found or Disturbance(share=0.0, by=(), evidence=())
    refused = replace(outcome, status="invalid", reason=reason, mend=_MEND, evidence=found.evidence)
    return refused, replace(found, refused=True)
