"""Launches that something outside disturbed: marked always, refused now and then."""

from __future__ import annotations

from dataclasses import replace

from corebound.launch.launch import Outcome
from corebound.model.telemetry import Disturbance
from corebound.stats.disturbance import disturbance, is_too_much, marked


def judged(outcome: Outcome, *, may_refuse: bool) -> tuple[Outcome, Disturbance | None]:
    """Mark the iterations of a launch that were disturbed, and refuse it if they are too many.

    Args:
        outcome: What became of it.
        may_refuse: Whether it may be launched again.

    Returns:
        The outcome, `invalid` if refused, and what disturbed it.
    """
    host = outcome.host
    if host is None:
        return outcome, None
    workers = tuple(replace(one, disturbed=marked(one.wall_ns, host)) for one in outcome.workers)
    found = disturbance(workers, host)
    outcome = replace(outcome, workers=workers)
    if found is None or outcome.status != "ok" or not may_refuse or not is_too_much(found, host):
        return outcome, found
    refused = replace(
        outcome,
        status="invalid",
        reason="it was disturbed from outside: " + "; ".join(found.evidence) + ".",
        mend="It is launched again. `corebound doctor` names what else uses this host.",
        evidence=found.evidence,
    )
    return refused, replace(found, refused=True)
