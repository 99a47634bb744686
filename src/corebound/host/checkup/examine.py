"""Every check, in the order they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from corebound.host.checkup import interrupts, kernel, limits, load, means, memory, processor
from corebound.host.checkup.judged import Judged, Seen
from corebound.host.checkup.moment import take
from corebound.model.files import Tree
from corebound.model.topology import Topology

# Long enough that a tick, 10 ms, of a CPU is 2 %.
BETWEEN_LOOKS_S = 0.5

_JUDGES: tuple[Callable[[Seen], Iterator[Judged]], ...] = (
    processor.judge,
    interrupts.judge,
    limits.judge,
    load.judge,
    memory.judge,
    kernel.judge,
    means.judge,
)


def examine(
    tree: Tree,
    *,
    topology: Topology | None,
    wait: Callable[[], None],
    pid: int,
    sudo: bool = False,
    tools: frozenset[str] | None = None,
    environments: Mapping[str, bool] | None = None,
) -> tuple[Judged, ...]:
    """Look at a host twice and judge what was seen; change nothing.

    Args:
        tree: Its files.
        topology: Its CPUs; None where it shows none.
        wait: Called between the two looks.
        pid: Our own process.
        sudo: Whether somebody else, not root, is going to measure.
        tools: Which of `means.PROGRAMS` are there; None: not looked for.
        environments: Whether each has been made; None: not looked for.
    """
    before = take(tree)
    wait()
    seen = Seen(
        tree=tree,
        topology=topology,
        before=before,
        after=take(tree),
        pid=pid,
        sudo=sudo,
        tools=tools,
        environments=environments,
    )
    return tuple(judged for judge in _JUDGES for judged in judge(seen))
