"""Launches of two modes in words, and what goes with a mode."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from corebound.analysis.launch_metrics import peak_rss_bytes, threads
from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.wording import full_name
from corebound.records.launch_record import Launch
from corebound.stats.comparison import Comparison, ModeComparison
from corebound.stats.distributions import fisher_p_value
from corebound.stats.intervals import Interval
from corebound.stats.modes import Mode
from corebound.stats.multiplicity import holm
from corebound.units import percent, ratio

# For each launch of both sides of a comparison, its mode.
Modes = Mapping[str, Mode]


def modes_by_launch(result: ScenarioResult) -> dict[str, Mode]:
    """The mode of each launch, by its id.

    Launches without one are absent: those of cells without two modes, those whose mode is
    unknown, and those of a baseline whose comparisons disagree.
    """
    found: dict[str, set[Mode]] = {}
    for pair in result.ranked:
        for launch, mode in _modes_of(pair.cell, pair.baseline).items():
            found.setdefault(launch, set()).add(mode)
    return {launch: modes.pop() for launch, modes in found.items() if len(modes) == 1}


def _modes_of(cell: CellResult, baseline: CellResult) -> dict[str, Mode]:
    """The known modes of the launches of one comparison, by their ids."""
    by_mode = cell.comparison.by_mode if cell.comparison else None
    if by_mode is None:
        return {}
    sides = (
        (cell, {block.block: block.cell for block in by_mode.modes.blocks}),
        (baseline, {block.block: block.baseline for block in by_mode.modes.blocks}),
    )
    return {
        launch.launch: mode
        for side, modes in sides
        for launch in side.summary.launches
        if (mode := modes.get(launch.block)) is not None
    }


def mode_notes(result: ScenarioResult) -> tuple[str, ...]:
    """For each comparison of launches of two modes a note, which begins with the cell's name."""
    notes = []
    for pair in result.ranked:
        if text := mode_text(pair.comparison):
            launches = (pair.cell.launches, pair.baseline.launches)
            with_property = associated_property(launches, _modes_of(pair.cell, pair.baseline))
            notes.append(
                " ".join(filter(None, (f"{full_name(pair.cell.cell)}:", text, with_property)))
            )
    return tuple(notes)


def mode_text(comparison: Comparison | None) -> str:
    """What a comparison says of two modes, in sentences; empty without modes."""
    by_mode = comparison.by_mode if comparison else None
    if by_mode is None:
        return ""
    modes = by_mode.modes
    return (
        f"In the same mode {_difference(modes.speedup_ratio, modes.interval)};"
        f" over both modes {_difference(by_mode.expected_ratio, by_mode.expected_interval)}."
        f" {_shares_text(by_mode)}"
    )


def _shares_text(by_mode: ModeComparison) -> str:
    modes = by_mode.modes
    cell, baseline = modes.share("cell"), modes.share("baseline")
    verdict = "a significant difference" if by_mode.shares_differ else "no significant difference"
    if cell is None or baseline is None:
        return f"Shares of the fast mode ({ratio(modes.slow_ratio)}): {verdict}."
    return (
        f"Fast mode ({ratio(modes.slow_ratio)}) in {cell.fast} of {cell.launches} against"
        f" {baseline.fast} of {baseline.launches} launches: {verdict}."
    )


def _difference(speedup_ratio: float, interval: Interval) -> str:
    """A difference with its interval: `3.3 % slower [2.9, 3.6]`."""
    if interval.high < 1:
        low, high = 1 / interval.high - 1, 1 / interval.low - 1
        return f"{percent(1 / speedup_ratio - 1)} slower [{low * 100:.1f}, {high * 100:.1f}]"
    if interval.low > 1:
        low, high = interval.low - 1, interval.high - 1
        return f"{percent(speedup_ratio - 1)} faster [{low * 100:.1f}, {high * 100:.1f}]"
    slower, faster = percent(1 / interval.low - 1), percent(interval.high - 1)
    return f"between {slower} slower and {faster} faster"


_Value = float | frozenset[int]


class _Property(Struct, frozen=True, kw_only=True):
    """A property of a launch; `of` gives None if it is unknown."""

    name: str
    of: Callable[[Launch], _Value | None]


def _memory_on_node_0(launch: Launch) -> float | None:
    """The share of the workers' memory on that node."""
    by_node: Counter[int] = Counter()
    for worker in launch.workers:
        by_node.update(worker.node_bytes)
    total = by_node.total()
    return by_node[0] / total if total else None


def _pool_size(launch: Launch) -> int | None:
    return sum(worker.threads_used or 0 for worker in launch.workers) or None


def _clock_hz(launch: Launch) -> float | None:
    readings = launch.host.frequencies_hz if launch.host else ()
    return statistics.median(readings) if readings else None


def _cpus(launch: Launch) -> frozenset[int] | None:
    seen = (stay.cpu for worker in launch.workers for one in worker.threads for stay in one.stays)
    return frozenset(seen) or None


# What a launch was given or began with, not what follows from being slow, such as waiting.
_PROPERTIES = (
    _Property(name="place in its block", of=lambda launch: launch.position),
    _Property(name="CPUs that it used", of=_cpus),
    _Property(name="share of memory on node 0", of=_memory_on_node_0),
    _Property(name="peak memory", of=peak_rss_bytes),
    _Property(
        name="number of page faults per iteration", of=lambda launch: launch.faults_per_iteration
    ),
    _Property(name="number of threads", of=threads),
    _Property(name="size of the thread pool", of=_pool_size),
    _Property(name="CPU clock", of=_clock_hz),
)


def associated_property(sides: Sequence[Sequence[Launch]], modes: Modes) -> str:
    """A sentence with the property that goes with the mode most clearly; empty if none does.

    Each property divides the launches of a side into two groups: values above the side's median and
    others, or the side's commonest set of CPUs and others. Whether the groups go
    with the modes is tested exactly, and corrected for the number of properties (Holm).

    Args:
        sides: The launches of the cell and of its baseline. Sides are divided separately, because
            they can differ for other reasons.
        modes: The modes of launches, by their ids; others are ignored.
    """
    tested = []
    for one in _PROPERTIES:
        groups = [group for side in sides for group in _divided(side, one, modes)]
        table = Counter(groups)
        p_value = fisher_p_value(
            (
                (table[True, "fast"], table[False, "fast"]),
                (table[True, "slow"], table[False, "slow"]),
            )
        )
        # A property that does not vary is no test.
        varies = len({group for group, _ in groups}) == 2
        tested.append((p_value if varies else None, one.name))
    found = holm([p_value for p_value, _ in tested])
    clear = [one for one, is_clear in zip(tested, found, strict=True) if is_clear]
    if not clear:
        return ""
    return f"The mode depends on the launch's {min(clear)[1]}."


def _divided(launches: Sequence[Launch], one: _Property, modes: Modes) -> list[tuple[bool, Mode]]:
    """The group and the mode of each launch that has both."""
    known = [
        (value, modes[launch.id])
        for launch in launches
        if launch.id in modes and (value := one.of(launch)) is not None
    ]
    first = _first_group([value for value, _ in known])
    return [(value in first, mode) for value, mode in known]


def _first_group(values: Sequence[_Value]) -> set[_Value]:
    """The values above the median, or equal to it if it is the highest; of sets the commonest."""
    numbers = [value for value in values if not isinstance(value, frozenset)]
    if not numbers:
        return {value for value, _ in Counter(values).most_common(1)}
    middle = statistics.median(numbers)
    return {number for number in numbers if number > middle} or {max(numbers)}
