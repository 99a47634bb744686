"""Rules on the work itself: its operators, its data, its checkpoints, its BLAS."""

from __future__ import annotations

import re

from corebound.diagnosis.evidence import CellEvidence, Evidence, settings
from corebound.diagnosis.finding import Finding
from corebound.model.record import OperatorProfile
from corebound.model.wire import Operator
from corebound.units import duration, percent, ratio

# Beyond half of a step one type of operator is the whole story, as the page's tables have it.
DOMINANT_SHARE = 0.5
# In the hourglass study a cheaper generator behind dropout took a step from 360 ms to 47;
# from a tenth on, doing without is more than the intervals of most scenarios are wide.
RANDOM_SHARE = 0.1
_RANDOM = re.compile(r"bernoulli|random|dropout|uniform_?$|normal_$|philox", re.IGNORECASE)
_NORMALISES = re.compile(r"batch_norm|layer_norm", re.IGNORECASE)
# A third of the step is half as much again as the rest of it: what one process that prepares
# batches beside the step could win back.
DATA_SHARE = 1 / 3
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
        times_ratio=_times(whole),
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


def data_starves_step(one: CellEvidence, among: Evidence) -> Finding | None:
    """A step that waits for its data: by its profile, or beside lighter preparation."""
    share, evidence, surely = 0.0, [], False
    profile = one.profile
    if profile is not None and profile.step_ns and "data" in profile.phases:
        share = profile.phases["data"] / profile.step_ns
        evidence.append(f"data: {duration(profile.phases['data'])} of {duration(profile.step_ns)}")
    loss = among.worst_loss(one, among.peers(one, ("preprocessing",)))
    if loss is not None:
        beside = 1 - 1 / loss.ratio
        surely = beside >= share
        share = max(share, beside)
        evidence.append(
            f"{ratio(loss.ratio)} as long as with `{settings(loss.than.cell, one.cell)}`"
        )
    if share < DATA_SHARE:
        return None
    cpu_ns, wall_ns = one.summary.cpu_median_ns, one.summary.median_ns
    if cpu_ns is not None and wall_ns:
        evidence.append(
            f"{ratio(cpu_ns / wall_ns)} CPUs in use on {len(one.cpus)}".replace("×", "")
        )
    loaders = one.value("loaders") or dict(one.cell.parameters).get("loaders")
    more = "more of them" if loaders not in {None, "0", 0} else "some (`loaders: 1` and up)"
    return Finding(
        rule="data-starves-step",
        tone="bad" if surely else "warn",
        what=f"Preparing data takes {percent(share, 0)} of the step: {_class(one, share)}.",
        evidence=tuple(evidence),
        remedy=f"Let processes beside the step prepare batches: {more}; or prepare the data once,"
        " ahead of training, and make it smaller.",
        cells=(one.cell,),
        times_ratio=_times(share),
    )


def _class(one: CellEvidence, share: float) -> str:
    """Which of the guide's four classes it is in, by its own names where it has them."""
    model = one.value("model")
    if model is None:
        return "the model waits" if share >= 0.5 else "data and model take turns"
    side = "limits it" if share >= 0.5 else "and the network limit it together"
    return f"heavy preparation {side}, the network is {model}"


def loaders(one: CellEvidence, among: Evidence) -> Finding | None:
    """More, or fewer, loader processes than serve the step best."""
    own = _number(one.value("loaders"))
    loss = among.worst_loss(one, among.peers(one, ("loaders",)))
    best = None if loss is None else _number(loss.than.value("loaders"))
    if own is None or loss is None or best is None:
        return None
    few = own < best
    return Finding(
        rule="loaders",
        tone="bad",
        what=f"{own} loaders are too {'few' if few else 'many'}: a step takes"
        f" {ratio(loss.ratio)} as long as with {best}.",
        evidence=(
            f"loaders {own}: {_time(one)}",
            f"loaders {best}: {_time(loss.than)}",
            f"{len(one.cpus)} CPUs for the step and its loaders",
        ),
        remedy=f"Set `loaders: {best}` (outside corebound DataLoader(num_workers={best})).",
        cells=(one.cell,),
        times_ratio=loss.ratio,
    )


def checkpoint_share(one: CellEvidence, among: Evidence) -> Finding | None:
    """Training that waits for its own checkpoints."""
    every = _number(one.value("every"))
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
        evidence=(f"every {every}: {_time(one)}", f"never: {_time(loss.than)}"),
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
        evidence=(f"{own}: {_time(one)}", f"{best}: {_time(loss.than)}"),
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
        f" {operator.calls:,.0f} calls, {percent(share, 0)}"
    )


def _times(share: float) -> float:
    return 1 / (1 - min(share, 0.99))


def _time(one: CellEvidence) -> str:
    return "–" if one.summary.median_ns is None else duration(one.summary.median_ns)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _blas(one: CellEvidence) -> str | None:
    names = [worker.blas for launch in one.ok for worker in launch.workers if worker.blas]
    return names[0] if names else None
