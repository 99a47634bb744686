"""Which launches of a block alternate: iterate by turns, so that they share what the host does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corebound.planning.assemble import Planned

# Every one of them holds its memory at once, and waits for the stints of all the others.
MOST = 8
# Frameworks whose workers do nothing between their steps once they have one thread; others
# load data and keep pools there. That of the first has one anyway.
_QUIET = frozenset({"none", "numpy"})


def companies(
    planned: Sequence[Planned], baselines: Mapping[str, str]
) -> tuple[tuple[Planned, ...], ...]:
    """Part the cells to be launched in a block into those that alternate, and single ones.

    A company is a baseline and cells that are compared with it, of one worker each and
    placed alike: what the host does to one it then does to all. Where `measure.alternate`
    is `auto`, workers have one thread too, of NumPy or of no framework: others' pools go on
    spinning for a while between their stints, on the CPUs of whoever has his, and what
    loads data in the background goes on loading.

    Args:
        planned: Cells that the host can hold, in the order of the block.
        baselines: For a cell's key, the key of the cell it is compared with.

    Returns:
        Companies of 1 to `MOST`, in the order of their first; each in the block's order.
    """
    by_key = {one.cell.key: one for one in planned}
    groups: dict[str, list[str]] = {}
    for key, one in by_key.items():
        base = by_key.get(baselines.get(key, ""))
        if base is not None and base is not one and _alike(one, base):
            members = groups.setdefault(base.cell.key, [base.cell.key])
            if len(members) < MOST:
                members.append(key)
    company_of = {key: base for base, members in groups.items() for key in members}
    found: dict[str, list[Planned]] = {}
    for key, one in by_key.items():
        found.setdefault(company_of.get(key, key), []).append(one)
    return tuple(map(tuple, found.values()))


def _alike(one: Planned, base: Planned) -> bool:
    return _may(one) and _may(base) and one.placement == base.placement


def _may(one: Planned) -> bool:
    how, placement = one.measure.alternate, one.placement
    if how == "never" or placement is None or one.traffic is not None:
        return False
    if len(placement.slots) != 1:
        return False
    framework = one.cell.framework
    one_thread = framework == "none" or placement.threads == 1
    return how == "always" or (framework in _QUIET and one_thread)
