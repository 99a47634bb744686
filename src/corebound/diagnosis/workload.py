"""Rules about the workload: its operators, checkpoints, BLAS and data loaders."""

import re
from collections.abc import Iterator

from msgspec import Struct

from corebound.diagnosis.evidence import (
    CellEvidence,
    Evidence,
    Finding,
    helper_share,
    median,
    settings,
    slower_than,
    waiting_share,
)
from corebound.diagnosis.gpu import BUSY_SHARE
from corebound.records.launch_record import Launch, OperatorProfile
from corebound.units import counted, cpu_quota, duration, percent, ratio
from corebound.worker.operator_table import Operator

# Above half of a step, one type of operator explains its time; the page's tables use the same
# limit.
DOMINANT_SHARE = 0.5
# In the hourglass study a cheaper generator for dropout reduced a step from 360 ms to 47. From
# a tenth on, the gain from avoiding it exceeds the interval width of most scenarios.
RANDOM_SHARE = 0.1
# From a tenth of the CPU time in the kernel on, keeping the memory gains more than a margin.
FAULTING_SHARE = 0.1
_LEAST_FAULTS = 100
# A page fault takes 0.3 µs on a real machine and 2.5 µs on a virtual one. If the kernel takes much
# longer for each of them, it is busy with something else.
_MOST_OF_FAULT_NS = 10_000
_RANDOM = re.compile(r"bernoulli|random|dropout|uniform_?$|normal_$|philox", re.IGNORECASE)
_NORMALISES = re.compile(r"batch_norm|layer_norm", re.IGNORECASE)
# A choice: protection against a crash is worth about this share of the time.
CHECKPOINT_SHARE = 0.1


def random_numbers(cell: CellEvidence, _: Evidence) -> Finding | None:
    """A random number generator, mostly dropout's, takes a large part of a step."""
    operators = _shares(cell.profile)
    random = [(operator, share) for operator, share in operators if _is_random(operator.type)]
    total_share = sum(share for _, share in random)
    if not random or total_share < RANDOM_SHARE:
        return None
    largest = max(random, key=lambda pair: pair[1])[0]
    return cell.finding(
        rule="random-numbers",
        what=f"Random number generation takes {percent(total_share, 0)} of the step,"
        f" mostly in {largest.type}.",
        evidence=tuple(_line(operator, share) for operator, share in random),
        fix="Draw fewer or cheaper numbers: one mask for several layers or steps, a mask of"
        " bytes instead of floats, a simpler generator. Remove dropout where batch normalisation"
        " already regularises.",
        times_ratio=1 / (1 - min(total_share, 0.99)),
    )


def operator_dominates(cell: CellEvidence, _: Evidence) -> Finding | None:
    """One type of operator takes most of a step."""
    operators = _shares(cell.profile)
    top = max(operators, key=lambda pair: pair[1], default=None)
    if top is None or top[1] <= DOMINANT_SHARE or _is_random(top[0].type):
        return None
    operator, share = top
    return cell.finding(
        rule="operator-dominates",
        tone="plain",
        what=f"{operator.type} alone takes {percent(share, 0)} of the step.",
        evidence=(_line(operator, share),),
        fix="To speed up the step, speed up this operator: another number of threads, number"
        " type, data layout or library.",
    )


def checkpoint_share(cell: CellEvidence, evidence: Evidence) -> Finding | None:
    """Training waits for its own checkpoints."""
    interval = number(cell.value("every"))
    without = [other for other in evidence.peers(cell, ("every",)) if other.value("every") == "0"]
    loss = evidence.worst_loss(cell, without)
    if not interval or loss is None or 1 - 1 / loss.ratio < CHECKPOINT_SHARE:
        return None
    share = 1 - 1 / loss.ratio
    # The cost of one save is constant; n times less often, it is a share s/n of the rest.
    longer_interval = interval * max(
        2, round((loss.ratio - 1) / CHECKPOINT_SHARE * (1 - CHECKPOINT_SHARE))
    )
    frequency = "every step" if interval == 1 else f"every {interval} steps"
    return cell.finding(
        rule="checkpoint-share",
        what=f"Saving {frequency} takes {percent(share, 0)} of the time: training is"
        f" {ratio(loss.ratio)} slower than without checkpoints.",
        evidence=(f"every {interval}: {time_of(cell)}", f"never: {time_of(loss.than)}"),
        fix=f"Save every {longer_interval} steps or less often, which reduces the share to about"
        f" {percent(CHECKPOINT_SHARE, 0)}, or save from another thread while training continues.",
        loss=loss,
    )


def memory_returned(cell: CellEvidence, _: Evidence) -> Finding | None:
    """Each iteration takes memory from the kernel that the one before returned to it."""
    if cell.cell.framework == "none":
        return None  # a program or a thread that an iteration starts takes new memory anyway
    share = median(cell.ok, _faulting_share)
    faults = median(cell.ok, lambda launch: launch.faults_per_iteration)
    if share is None or faults is None or share < FAULTING_SHARE:
        return None
    counts = [count for launch in cell.ok if (count := launch.faults_per_iteration) is not None]
    return cell.finding(
        rule="memory-returned",
        what=f"{percent(share, 0)} of the CPU time is spent in the kernel, with {faults:,.0f} page"
        " faults per iteration: memory is returned to the kernel and taken again.",
        evidence=(
            f"page faults per iteration, by launch: {min(counts):,.0f} to {max(counts):,.0f}",
            "launches with a different number of them differ in time",
        ),
        fix="Keep the memory: `env: {MALLOC_TRIM_THRESHOLD_: '1000000000',"
        " MALLOC_MMAP_THRESHOLD_: '1000000000', MALLOC_TOP_PAD_: '67108864'}`, or `allocator:"
        " tcmalloc`.",
    )


def _faulting_share(launch: Launch) -> float | None:
    """The share of CPU time in the kernel; 0 if page faults do not explain it."""
    host, per_iteration = launch.host, launch.faults_per_iteration
    if host is None or per_iteration is None:
        return None
    faults = host.total("minor_faults")
    system_ns, user_ns = host.total("system_ns"), host.total("user_ns")
    if not faults or system_ns is None or user_ns is None or system_ns + user_ns == 0:
        return None
    explains = per_iteration >= _LEAST_FAULTS and system_ns <= faults * _MOST_OF_FAULT_NS
    return system_ns / (system_ns + user_ns) if explains else 0.0


def slower_blas(cell: CellEvidence, evidence: Evidence) -> Finding | None:
    """The cell uses a slower BLAS library than another that was measured for the same products."""
    library = _blas(cell)
    if library is None:
        return None
    others = [
        other
        for other in evidence.peers(cell, ("blas", "environment"))
        if (name := _blas(other)) is not None
        and name.split()[0] != library.split()[0]
        and other.cell.framework == cell.cell.framework
    ]
    loss = evidence.worst_loss(cell, others)
    if loss is None:
        return None
    best = _blas(loss.than)
    return cell.finding(
        rule="slower-blas",
        what=f"{library} is {ratio(loss.ratio)} slower than {best} for the same products.",
        evidence=(f"{library}: {time_of(cell)}", f"{best}: {time_of(loss.than)}"),
        fix=f"Use the faster library on this processor: `{settings(loss.than, cell)}`.",
        loss=loss,
    )


def _shares(profile: OperatorProfile | None) -> list[tuple[Operator, float]]:
    """The operators of a step, with their shares of the step or of all operators; largest first."""
    if profile is None:
        return []
    step_ns = profile.step_ns or sum(operator.total_ns for operator in profile.operators)
    if not step_ns:
        return []
    listed = ((operator, operator.total_ns / step_ns) for operator in profile.operators)
    return sorted(listed, key=lambda pair: -pair[1])


def _is_random(name: str) -> bool:
    return bool(_RANDOM.search(name)) and not _NORMALISES.search(name)


def _line(operator: Operator, share: float) -> str:
    return (
        f"{operator.type}: {duration(operator.total_ns)} per iteration in"
        f" {counted(operator.calls)} calls, {percent(share, 0)}"
    )


def time_of(cell: CellEvidence) -> str:
    """The cell's median as text, for a line of evidence."""
    median_ns = cell.summary.wall_median_ns
    return "–" if median_ns is None else duration(median_ns)


def number(text: str | None) -> int | None:
    """The whole number in a value of an axis; None if it is not a whole number."""
    return int(text) if text is not None and text.isdecimal() else None


def _blas(cell: CellEvidence) -> str | None:
    names = [worker.blas for launch in cell.ok for worker in launch.workers if worker.blas]
    return names[0] if names else None


# If data takes a third of the step, the step takes 1.5 times as long as the rest of it. One
# process that prepares batches in parallel could save that.
DATA_SHARE = 1 / 3


class _Starving(Struct, frozen=True, kw_only=True):
    """One sign that a step waits for its data.

    Attributes:
        share: Share of the step that it waits.
        compared: Whether a comparison with another cell's time shows it.
    """

    share: float
    compared: bool
    line: str


def data_starves_step(cell: CellEvidence, evidence: Evidence) -> Finding | None:
    """A step waits for its data: by its profile, by its loaders, or compared with lighter work."""
    signs = tuple(_signs(cell, evidence))
    worst = max(signs, key=lambda sign: (sign.share, sign.compared), default=None)
    if worst is None or worst.share < DATA_SHARE:
        return None
    more = "more `loaders`" if cell.has_loaders else "`loaders: 1` or more"
    return cell.finding(
        rule="data-starves-step",
        tone="bad" if worst.compared else "warn",
        what=f"Preparing data takes {percent(worst.share, 0)} of the step:"
        f" {_class(cell, worst.share)}.",
        evidence=(*(sign.line for sign in signs), *_use(cell)),
        fix=f"Prepare batches in parallel processes: {more}. Or preprocess the data once, before"
        " training, and make it smaller.",
        times_ratio=1 / (1 - min(worst.share, 0.99)),
    )


def _signs(cell: CellEvidence, evidence: Evidence) -> Iterator[_Starving]:
    profile = cell.profile
    if profile is not None and profile.step_ns and "data" in profile.phases:
        data_ns = profile.phases["data"]
        line = f"data: {duration(data_ns)} of {duration(profile.step_ns)}"
        yield _Starving(share=data_ns / profile.step_ns, compared=False, line=line)
    loss = evidence.worst_loss(cell, evidence.peers(cell, ("preprocessing",)))
    if loss is not None:
        share = 1 - 1 / loss.ratio
        yield _Starving(share=share, compared=True, line=slower_than(cell, loss))
    waits, helpers = median(cell.ok, waiting_share), median(cell.ok, helper_share)
    if cell.has_loaders and waits is not None and helpers is not None and helpers >= BUSY_SHARE:
        line = (
            f"the busiest loader is active {percent(helpers, 0)} of the time, the training"
            f" process waits {percent(waits, 0)}"
        )
        yield _Starving(share=waits, compared=False, line=line)


def _use(cell: CellEvidence) -> Iterator[str]:
    """A line with the number of CPUs that a step keeps busy."""
    if (cpus_busy := cell.summary.cpus_busy) is not None:
        yield f"{cpus_busy:.2f} of {cpu_quota(len(cell.cpus))} in use"


def _class(cell: CellEvidence, share: float) -> str:
    """The cell's class of the guide's four, by its model's name."""
    model = cell.value("model")
    if model is None:
        return "the model waits" if share >= 0.5 else "data and model alternate"
    side = "limits it" if share >= 0.5 else "and the network limit it together"
    return f"heavy preparation {side}; the network is {model}"


def loaders(cell: CellEvidence, evidence: Evidence) -> Finding | None:
    """The cell has more, or fewer, loader processes than the fastest cell."""
    number_of_loaders = number(cell.value("loaders"))
    loss = evidence.worst_loss(cell, evidence.peers(cell, ("loaders",)))
    best = None if loss is None else number(loss.than.value("loaders"))
    if number_of_loaders is None or loss is None or best is None:
        return None
    is_too_few = number_of_loaders < best
    return cell.finding(
        rule="loaders",
        what=f"{number_of_loaders} loaders are too {'few' if is_too_few else 'many'}: a step is"
        f" {ratio(loss.ratio)} slower than with {best}.",
        evidence=(
            f"loaders {number_of_loaders}: {time_of(cell)}",
            f"loaders {best}: {time_of(loss.than)}",
            f"{len(cell.cpus)} CPUs for the step and its loaders",
        ),
        fix=f"Set `loaders: {best}` (outside corebound: DataLoader(num_workers={best})).",
        loss=loss,
    )
