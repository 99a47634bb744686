"""Which launches are refused: disturbed ones, and those that alternated with an unlike baseline."""

from collections.abc import Sequence

from msgspec.structs import replace

from corebound.analysis.wording import count
from corebound.launch.launch import LaunchResult
from corebound.records.launch_record import CONTINUES, Kind
from corebound.records.telemetry import Disturbance, Refusal
from corebound.serving.checks import bottleneck_evidence
from corebound.stats.interference import (
    BusyThreads,
    busy_threads,
    disturbance,
    disturbed_ranges,
    is_too_much,
)
from corebound.stats.warmup import Warmup, first_used_iteration

# A launch's result, and how it was disturbed.
Screened = tuple[LaunchResult, Disturbance | None]

_REFUSED_FIX = f"{CONTINUES} `corebound doctor` shows what else uses this host."
_ALONE_FIX = f"{CONTINUES} To avoid this attempt, set `measure: {{alternate: never}}`."


def screen(
    results: Sequence[LaunchResult],
    *,
    may_refuse: bool,
    warmup: Warmup = "auto",
    kind: Kind = "measure",
    baseline: int | None = None,
) -> tuple[Screened, ...]:
    """Mark the disturbed iterations, and refuse launches with too many of them.

    If the baseline of several launches that alternated is refused, all are: they are useful only
    with it. The others do not need each other.

    Args:
        results: The results of one launch, or of several that alternated.
        may_refuse: Whether the launches may be repeated.
        warmup: `Measure.warmup`: only iterations after the warm-up count towards the limit.
        baseline: Which of them is the baseline of the others; None: all need each other.

    Returns:
        For each launch its result, with status `invalid` if refused, and its disturbance.
    """
    screened = tuple(_marked(result, warmup) for result in results)
    if not may_refuse:
        return screened
    disturbed = {at for at, launch in enumerate(screened) if _is_too_disturbed(*launch, kind)}
    usable = len(screened) - len(disturbed)
    # The baseline alone would be of no use.
    if disturbed and (baseline is None or baseline in disturbed or usable == 1):
        disturbed = set(range(len(screened)))
    return tuple(
        _refused(*launch, kind) if at in disturbed else launch for at, launch in enumerate(screened)
    )


def _marked(result: LaunchResult, warmup: Warmup) -> Screened:
    host = result.host
    if host is None:
        return result, None
    workers = tuple(
        replace(worker, disturbed=disturbed_ranges(worker, host)) for worker in result.workers
    )
    # Detecting the warm-up is slow, and most launches are not disturbed.
    is_disturbed = any(worker.disturbed for worker in workers)
    warm = [
        first_used_iteration(worker, warmup, is_alone=len(workers) == 1)
        for worker in (workers if is_disturbed else ())
    ]
    return replace(result, workers=workers), disturbance(workers, host, warm=warm)


def compare_busy_threads(
    screened: Sequence[Screened], baseline: int, *, may_refuse: bool
) -> tuple[Screened, ...]:
    """Refuse launches that alternated with a baseline that keeps fewer or more threads busy.

    The plan lets only cells with equal CPUs and threads alternate. This finds threads of the
    workload's own, such as those of a data loader that only one side has. If only the baseline
    is left, it is refused too, because the other launches have influenced it.

    Args:
        screened: The launches that alternated, as `screen` returns them.
        baseline: Which of them is the baseline of the others.
        may_refuse: Whether the launches may be repeated.
    """
    reference, _ = screened[baseline]
    compared = list(screened)
    for at, (result, _) in enumerate(screened):
        if not (_has_alternated(result) and _has_alternated(reference)):
            continue
        cpus = len(result.host.cpus) if result.host else None
        busy = busy_threads(result.workers, reference.workers, cpus=cpus)
        if busy is not None:
            compared[at] = _unlike_baseline(result, compared[at][1], busy, may_refuse=may_refuse)
    if may_refuse and compared != list(screened):
        others = [result for at, (result, _) in enumerate(compared) if at != baseline]
        if not any(map(_has_alternated, others)):
            reason = "a launch that it alternated with keeps another number of threads busy"
            compared[baseline] = _refused_as(reference, reason)
    return tuple(compared)


def _has_alternated(result: LaunchResult) -> bool:
    return result.status == "ok" and result.pauses is not None


def _unlike_baseline(
    result: LaunchResult,
    disturbance: Disturbance | None,
    busy: tuple[BusyThreads, BusyThreads],
    *,
    may_refuse: bool,
) -> Screened:
    """A launch that kept another number of threads busy than its baseline."""
    if result.pauses is not None:
        result = replace(result, pauses=replace(result.pauses, is_like_baseline=False))
    if not may_refuse:
        return result, disturbance
    own, of_baseline = busy
    return _refused_as(
        result,
        f"it alternated with its baseline, but kept {count(own.threads, 'thread')} busy on"
        f" {own.cpus:.1f} CPUs and the baseline {of_baseline.threads} on {of_baseline.cpus:.1f};"
        " its further launches do not alternate",
    )


def _refused_as(result: LaunchResult, reason: str) -> Screened:
    """A refused launch that nothing outside disturbed."""
    refused = replace(
        result, status="invalid", reason=f"{reason}.", fix=_ALONE_FIX, evidence=(reason,)
    )
    return refused, Disturbance(
        share=0.0, by=(), evidence=(reason,), refused=True, refusal="unlike threads"
    )


def _is_too_disturbed(result: LaunchResult, disturbance: Disturbance | None, kind: Kind) -> bool:
    """Whether to refuse a launch; a suspended launch may also have timed out."""
    if result.status == "timed-out":
        return disturbance is not None and "suspension" in disturbance.by
    # A disturbance may also be why a server seems too slow for a race, or its requests were late.
    judged = result.status in {"ok", "dropped"} or _has_late_generator(result)
    return judged and is_too_much(disturbance, result.host, kind)


def _has_late_generator(result: LaunchResult) -> bool:
    """Whether a launch is invalid for its load generator alone."""
    if result.status != "invalid" or (served := result.served) is None:
        return False
    return result.evidence == bottleneck_evidence(
        served.answered, served.traffic, len(served.generator_cpus)
    )


def _refused(result: LaunchResult, disturbance: Disturbance | None, kind: Kind) -> Screened:
    is_too_disturbed = _is_too_disturbed(result, disturbance, kind)
    if result.status != "ok" and not is_too_disturbed:
        return result, disturbance
    if is_too_disturbed and disturbance is not None:
        reason = f"the launch was disturbed from outside: {'; '.join(disturbance.evidence)}."
    else:
        reason = "a launch that it alternated with was disturbed from outside."
    disturbance = disturbance or Disturbance(share=0.0, by=(), evidence=())
    refused = replace(
        result,
        status="invalid",
        reason=reason,
        fix=_REFUSED_FIX,
        evidence=disturbance.evidence,
    )
    why: Refusal = "disturbed" if is_too_disturbed else "partner disturbed"
    return refused, replace(disturbance, refused=True, refusal=why)
