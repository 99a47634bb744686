"""Rules on data: whether a step waits for it, and how many processes prepare it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from corebound.diagnosis.evidence import CellEvidence, Evidence, as_long_as
from corebound.diagnosis.finding import Finding
from corebound.diagnosis.launches import median
from corebound.diagnosis.use import cpu_share, gpu_share, helper_share, waiting_share
from corebound.diagnosis.work import number, time_of
from corebound.units import duration, percent, ratio

# A third of the step is half as much again as the rest of it: what one process that prepares
# batches beside the step could win back.
DATA_SHARE = 1 / 3
# From where on processes or CPUs have no time left: the rest goes into handing batches over.
BUSY_SHARE = 0.8
# A GPU that is idle more than that is not what limits a step.
IDLE_SHARE = 0.5


class _Starving(Struct, frozen=True, kw_only=True):
    """One sign that a step waits for its data.

    Attributes:
        share: Of the step, that it waits.
        compared: Whether a comparison with another cell's time shows it.
        line: The evidence in words.
    """

    share: float
    compared: bool
    line: str


def data_starves_step(one: CellEvidence, among: Evidence) -> Finding | None:
    """A step that waits for its data: by its profile, by what is busy, or beside lighter work."""
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
        remedy=f"Let processes beside the step prepare batches: {more}; or prepare the data once,"
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
    """How many CPUs a step keeps busy."""
    if (busy := one.summary.cpus_busy) is not None:
        yield f"{busy:.2f} CPUs in use on {len(one.cpus)}"


def _class(one: CellEvidence, share: float) -> str:
    """Which of the guide's four classes it is in: by what is busy, and its own names."""
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
    """More, or fewer, loader processes than serve the step best."""
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
        remedy=f"Set `loaders: {best}` (outside corebound DataLoader(num_workers={best})).",
        cells=(one.cell,),
        times_ratio=loss.ratio,
    )
