"""Rules about the workload: its operators, checkpoints, BLAS and data loaders."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from corebound.diagnosis.evidence import (
    CellEvidence,
    Evidence,
    Finding,
    as_long_as,
    cpu_share,
    gpu_share,
    helper_share,
    median,
    settings,
    waiting_share,
)
from corebound.records.launch_record import OperatorProfile
from corebound.units import counted, duration, percent, ratio
from corebound.worker.protocol import Operator

# Above half of a step, one type of operator explains its time; the page's tables use the same
# limit.
DOMINANT_SHARE = 0.5
# In the hourglass study a cheaper generator for dropout reduced a step from 360 ms to 47. From
# a tenth on, the gain from avoiding it exceeds the interval width of most scenarios.
RANDOM_SHARE = 0.1
_RANDOM = re.compile(r"bernoulli|random|dropout|uniform_?$|normal_$|philox", re.IGNORECASE)
_NORMALISES = re.compile(r"batch_norm|layer_norm", re.IGNORECASE)
# A choice: protection against a crash is worth about this share of the time.
CHECKPOINT_SHARE = 0.1


def random_numbers(one: CellEvidence, _: Evidence) -> Finding | None:
    """A random number generator, mostly dropout's, takes a large part of a step."""
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
        fix="Draw fewer or cheaper numbers: one mask for several layers or steps, a mask of"
        " bytes in place of floats, a simpler generator; leave dropout out where batch"
        " normalisation regularises already.",
        cells=(one.cell,),
        times_ratio=1 / (1 - min(whole, 0.99)),
    )


def operator_dominates(one: CellEvidence, _: Evidence) -> Finding | None:
    """One type of operator takes most of a step."""
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
        fix="Whatever makes the step faster has to make this operator faster: other threads"
        " or another type of numbers for it, another layout of its data, another library.",
        cells=(one.cell,),
        times_ratio=1.0,
    )


def checkpoint_share(one: CellEvidence, among: Evidence) -> Finding | None:
    """Training waits for its own checkpoints."""
    every = number(one.value("every"))
    never = [other for other in among.peers(one, ("every",)) if other.value("every") == "0"]
    loss = among.worst_loss(one, never)
    if not every or loss is None or 1 - 1 / loss.ratio < CHECKPOINT_SHARE:
        return None
    share = 1 - 1 / loss.ratio
    # The cost of one save is constant; n times less often, it is a share s/n of the rest.
    seldom = every * max(2, round((loss.ratio - 1) / CHECKPOINT_SHARE * (1 - CHECKPOINT_SHARE)))
    often = "every step" if every == 1 else f"every {every} steps"
    return Finding(
        rule="checkpoint-share",
        tone="bad",
        what=f"Saving {often} takes {percent(share, 0)} of the time:"
        f" {ratio(loss.ratio)} as long as without.",
        evidence=(f"every {every}: {time_of(one)}", f"never: {time_of(loss.than)}"),
        fix=f"Save every {seldom} steps or more seldom, which brings it to about"
        f" {percent(CHECKPOINT_SHARE, 0)}, or save from another thread while training goes on.",
        cells=(one.cell,),
        times_ratio=loss.ratio,
    )


def slower_blas(one: CellEvidence, among: Evidence) -> Finding | None:
    """The cell uses a slower BLAS library than another that was measured for the same products."""
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
        fix=f"Use the other on this processor: `{settings(loss.than.cell, one.cell)}`.",
        cells=(one.cell,),
        times_ratio=loss.ratio,
    )


def _shares(profile: OperatorProfile | None) -> list[tuple[Operator, float]]:
    """The operators of a step, with their shares of the step or of all operators; largest first."""
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
    """The cell's median as text, for a line of evidence."""
    return "–" if one.summary.median_ns is None else duration(one.summary.median_ns)


def number(text: str | None) -> int | None:
    """The whole number in a value of an axis; None if it is not a whole number."""
    return int(text) if text is not None and text.isdecimal() else None


def _blas(one: CellEvidence) -> str | None:
    names = [worker.blas for launch in one.ok for worker in launch.workers if worker.blas]
    return names[0] if names else None


# If data takes a third of the step, the step takes 1.5 times as long as the rest of it. One
# process that prepares batches in parallel could save that.
DATA_SHARE = 1 / 3
# Share from which processes or CPUs count as fully busy: the rest goes into passing batches on.
BUSY_SHARE = 0.8
# A GPU that is idle for a larger share of the time does not limit a step.
IDLE_SHARE = 0.5


class _Starving(Struct, frozen=True, kw_only=True):
    """One sign that a step waits for its data.

    Attributes:
        share: Share of the step that it waits.
        compared: Whether a comparison with another cell's time shows it.
        line: The evidence in words.
    """

    share: float
    compared: bool
    line: str


def data_starves_step(one: CellEvidence, among: Evidence) -> Finding | None:
    """A step waits for its data: by its profile, by what is busy, or compared with lighter work."""
    signs = tuple(_signs(one, among))
    worst = max(signs, key=lambda sign: (sign.share, sign.compared), default=None)
    if worst is None or worst.share < DATA_SHARE:
        return None
    more = "more of them" if _has_loaders(one) else "some (`loaders: 1` and up)"
    return Finding(
        rule="data-starves-step",
        tone="bad" if worst.compared else "warn",
        what=f"Preparing data takes {percent(worst.share, 0)} of the step:"
        f" {_class(one, worst.share)}.",
        evidence=(*(sign.line for sign in signs), *_use(one)),
        fix=f"Let processes beside the step prepare batches: {more}; or prepare the data once,"
        " ahead of training, and make it smaller.",
        cells=(one.cell,),
        times_ratio=1 / (1 - min(worst.share, 0.99)),
    )


def _signs(one: CellEvidence, among: Evidence) -> Iterator[_Starving]:
    profile = one.profile
    if profile is not None and profile.step_ns and "data" in profile.phases:
        data_ns = profile.phases["data"]
        line = f"data: {duration(data_ns)} of {duration(profile.step_ns)}"
        yield _Starving(share=data_ns / profile.step_ns, compared=False, line=line)
    loss = among.worst_loss(one, among.peers(one, ("preprocessing",)))
    if loss is not None:
        share = 1 - 1 / loss.ratio
        yield _Starving(share=share, compared=True, line=as_long_as(one, loss))
    waits, helpers = median(one.ok, waiting_share), median(one.ok, helper_share)
    if _has_loaders(one) and waits is not None and helpers is not None and helpers >= BUSY_SHARE:
        line = (
            f"its busiest loader works {percent(helpers, 0)} of the time, the process of the"
            f" step waits {percent(waits, 0)}"
        )
        yield _Starving(share=waits, compared=False, line=line)
    gpu, cpu = median(one.ok, gpu_share), median(one.ok, cpu_share)
    if gpu is not None and cpu is not None and gpu < IDLE_SHARE and cpu >= BUSY_SHARE:
        line = f"the GPU is busy {percent(gpu, 0)} of the time, the CPUs {percent(cpu, 0)}"
        yield _Starving(share=1 - gpu, compared=False, line=line)


def _has_loaders(one: CellEvidence) -> bool:
    asked = one.value("loaders") or dict(one.cell.parameters).get("loaders")
    return asked not in {None, "0", 0}


def _use(one: CellEvidence) -> Iterator[str]:
    """A line with the number of CPUs that a step keeps busy."""
    if (busy := one.summary.cpus_busy) is not None:
        yield f"{busy:.2f} CPUs in use on {len(one.cpus)}"


def _class(one: CellEvidence, share: float) -> str:
    """The cell's class of the guide's four: by what is busy, or by its model's name."""
    gpu, cpu = median(one.ok, gpu_share), median(one.ok, cpu_share)
    if gpu is not None and cpu is not None:
        if gpu >= IDLE_SHARE:
            return "CPUs and GPU are busy" if cpu >= BUSY_SHARE else "the GPU is busy all the same"
        rest = "the CPUs have no time left" if cpu >= BUSY_SHARE else "the CPUs have time left"
        return f"the GPU waits, and {rest}"
    model = one.value("model")
    if model is None:
        return "the model waits" if share >= 0.5 else "data and model take turns"
    side = "limits it" if share >= 0.5 else "and the network limit it together"
    return f"heavy preparation {side}, the network is {model}"


def loaders(one: CellEvidence, among: Evidence) -> Finding | None:
    """The cell has more, or fewer, loader processes than the fastest cell."""
    own = number(one.value("loaders"))
    loss = among.worst_loss(one, among.peers(one, ("loaders",)))
    best = None if loss is None else number(loss.than.value("loaders"))
    if own is None or loss is None or best is None:
        return None
    few = own < best
    return Finding(
        rule="loaders",
        tone="bad",
        what=f"{own} loaders are too {'few' if few else 'many'}: a step takes"
        f" {ratio(loss.ratio)} as long as with {best}.",
        evidence=(
            f"loaders {own}: {time_of(one)}",
            f"loaders {best}: {time_of(loss.than)}",
            f"{len(one.cpus)} CPUs for the step and its loaders",
        ),
        fix=f"Set `loaders: {best}` (outside corebound DataLoader(num_workers={best})).",
        cells=(one.cell,),
        times_ratio=loss.ratio,
    )
