"""How the launches of a block are ordered, which of them alternate, and which start at once."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from corebound.planning.plan import PlannedCell


def block_order(keys: Iterable[str], *, seed: int, scenario: str, block: int) -> tuple[str, ...]:
    """Shuffle the cells of one scenario for one block.

    The order includes cells that are not launched in this block, so a resumed run uses the
    same order.

    Args:
        keys: The keys of all the scenario's cells.
        seed: The run's seed.
        scenario: The scenario's name; each scenario is shuffled separately.
        block: The block's number, from 0.
    """

    def digest(key: str) -> bytes:
        return hashlib.sha256(f"{seed}/{scenario}/{block}/{key}".encode()).digest()

    return tuple(sorted(keys, key=digest))


# Largest group of alternating cells: all of them hold their memory at the same time, and
# each waits for the time slices of all the others.
MOST_INTERLEAVED = 8


def interleave_groups(
    planned: Sequence[PlannedCell],
    baselines: Mapping[str, str],
    *,
    alone: Collection[str] = (),
) -> tuple[tuple[PlannedCell, ...], ...]:
    """Divide the cells of a block into groups that alternate, and single cells.

    A group is a baseline and the cells that are compared with it. Servers do not alternate,
    because requests would pile up. If `measure.alternate` is `auto`, the cells of a group keep
    the same CPUs busy, because a CPU that was idle is slow for a while (docs/adr/0024). Neither
    do cells that compute on GPUs, which no signal stops. Cells with a CPU quota never alternate:
    the kernel would fill up their quota while they are paused.

    Args:
        planned: Cells that can run on the host, in the order of the block.
        baselines: Maps a cell's key to the key of its baseline.
        alone: Keys of cells that an earlier launch has shown to be unfit for it.

    Returns:
        Groups of 1 to `MOST_INTERLEAVED` cells, ordered by their first cell; the cells of each
        are in the block's order.
    """
    by_key = {planned_cell.cell.key: planned_cell for planned_cell in planned}
    may_interleave = {
        key
        for key, planned_cell in by_key.items()
        if key not in alone and _may_interleave(planned_cell)
    }
    groups: dict[str, list[str]] = {}
    for key, planned_cell in by_key.items():
        baseline = baselines.get(key, key)
        if (
            baseline != key
            and {key, baseline} <= may_interleave
            and _may_share_time(planned_cell, by_key[baseline])
        ):
            members = groups.setdefault(baseline, [baseline])
            if len(members) < MOST_INTERLEAVED:
                members.append(key)
    group_of = {key: baseline for baseline, members in groups.items() for key in members}
    cells_by_group: dict[str, list[PlannedCell]] = {}
    for key, planned_cell in by_key.items():
        cells_by_group.setdefault(group_of.get(key, key), []).append(planned_cell)
    return tuple(map(tuple, cells_by_group.values()))


# Most launches that start at once, and workers for each CPU that they import on. Importing takes
# one thread, and waits for files in between: with more workers none is faster, but all hold memory.
MOST_TOGETHER = 8
_WORKERS_PER_CPU = 2


def start_groups(
    turns: Sequence[tuple[PlannedCell, ...]], *, apart: Collection[str] = ()
) -> tuple[tuple[tuple[PlannedCell, ...], ...], ...]:
    """Divide the turns of a block into groups that start at once.

    Servers, commands and cells on GPUs or with a CPU quota start by themselves, and so does all
    if `measure.alternate` is `never`.

    Args:
        turns: Cells that alternate, and single cells, in the order of the block.
        apart: Keys of cells that an earlier launch has shown to be unfit for it.

    Returns:
        Groups of turns, ordered by their first one; the turns of each are in the block's order.
    """
    joint = [
        all(_may_start_together(member) and member.cell.key not in apart for member in turn)
        for turn in turns
    ]
    cpus = {
        cpu
        for turn, is_joint in zip(turns, joint, strict=True)
        if is_joint
        for member in turn
        for slot in (member.placement.slots if member.placement else ())
        for cpu in slot.cpus
    }
    groups: list[list[tuple[PlannedCell, ...]]] = []
    last: list[tuple[PlannedCell, ...]] | None = None
    for turn, is_joint in zip(turns, joint, strict=True):
        members = [member for some in (*(last or ()), turn) for member in some]
        workers = sum(len(member.requests) for member in members)
        fits = len(members) <= MOST_TOGETHER and workers <= _WORKERS_PER_CPU * len(cpus)
        if is_joint and last is not None and fits:
            last.append(turn)
            continue
        groups.append([turn])
        if is_joint:
            last = groups[-1]
    return tuple(map(tuple, groups))


def _may_start_together(planned_cell: PlannedCell) -> bool:
    is_command = any(request.command is not None for request in planned_cell.requests)
    if planned_cell.measure.alternate == "never" or is_command:
        return False
    return (
        planned_cell.placement is not None
        and planned_cell.traffic is None
        and not planned_cell.cell.gpus
        and planned_cell.cell.cpu_quota is None
    )


def _may_share_time(planned_cell: PlannedCell, baseline: PlannedCell) -> bool:
    """Whether two cells keep the same CPUs busy, or alternation is requested all the same."""
    if planned_cell.measure.alternate == "always":
        return True
    first, second = (
        cell.placement
        and ([set(slot.cpus) for slot in cell.placement.slots], cell.threads, cell.placement.omp)
        for cell in (planned_cell, baseline)
    )
    return first == second


def _may_interleave(planned_cell: PlannedCell) -> bool:
    alternate = planned_cell.measure.alternate
    if alternate == "never" or planned_cell.placement is None or planned_cell.traffic is not None:
        return False
    if planned_cell.cell.cpu_quota is not None:
        return False
    return alternate == "always" or not planned_cell.cell.gpus
