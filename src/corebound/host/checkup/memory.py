"""What the kernel does to memory behind a measurement's back.

Source: Documentation/admin-guide/mm/transhuge.rst, ksm.rst, numa_memory_policy.rst,
Documentation/admin-guide/sysctl/vm.rst and kernel.rst.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from corebound.host.checkup.judged import Change, Judged, Seen, Subject
from corebound.host.checkup.reading import chosen, content, integer, number, numbered
from corebound.units import size

_THP_FOLDER = "sys/kernel/mm/transparent_hugepage"
_SWAPPINESS = "proc/sys/vm/swappiness"
_KSM_RUN = "sys/kernel/mm/ksm/run"
_BALANCING = "proc/sys/kernel/numa_balancing"
# 1 keeps a process's own pages while the page cache can be dropped instead.
_LEAST_SWAPPY = "1"
_MOST_SWAPPY = 10

_SWAP = Subject(
    check="swap",
    group="memory",
    why="memory was short here: a page that a launch needs back from the disk costs milliseconds",
)
_SWAPPY = Subject(
    check="swappiness",
    group="memory",
    why="the kernel swaps out pages of resting processes to keep files in memory",
)
_THP = Subject(
    check="THP",
    group="memory",
    why="`always` gives huge pages to whoever gets there first and merges others later,"
    " so equal launches differ",
)
_DEFRAG = Subject(
    check="THP defrag",
    group="memory",
    why="`always` stops a thread that touches new memory while the kernel makes room",
)
_KSM = Subject(
    check="KSM",
    group="memory",
    why="a kernel thread compares and merges pages, and writing to one of them splits it again",
)
_NUMA = Subject(
    check="NUMA balancing",
    group="memory",
    why="the kernel unmaps pages to see who uses them, and moves them and threads between nodes",
)


def judge(seen: Seen) -> Iterator[Judged]:
    """Swap, huge pages, merging, balancing."""
    yield _swap(seen)
    yield _swappiness(seen)
    yield _huge_pages(seen, "enabled", _THP)
    yield _huge_pages(seen, "defrag", _DEFRAG)
    yield _merging(seen)
    yield _balancing(seen)


def _swaps(seen: Seen) -> tuple[int, int] | None:
    """Size and use of all swap in KiB; None where it is not shown."""
    lines = (seen.tree.read("proc/swaps") or "").splitlines()
    if not lines or not lines[0].startswith("Filename"):
        return None
    total = used = 0
    for line in lines[1:]:
        # A file's name may hold spaces; what follows it does not.
        found = re.search(r"\s([0-9]{1,18})\s+([0-9]{1,18})\s+-?[0-9]{1,6}\s*$", line)
        if found is None:
            return None
        total += int(found[1])
        used += int(found[2])
    return total, used


def _swap(seen: Seen) -> Judged:
    swaps = _swaps(seen)
    if swaps is None:
        return _SWAP.unavailable("no proc/swaps here")
    total, used = swaps
    if not total:
        return _SWAP.ok("there is none")
    value = f"{size(used << 10)} of {size(total << 10)} used"
    before, after = seen.before.swapped_pages, seen.after.swapped_pages
    if before is not None and after is not None and after > before:
        value += f", {after - before} pages moved just now"
    elif not used:
        return _SWAP.ok(value)
    return _SWAP.warning(value, mend="swapoff -a", undo="swapon -a")


def _swappiness(seen: Seen) -> Judged:
    text = content(seen.tree, _SWAPPINESS)
    if text is None:
        return _SWAPPY.unavailable("no vm.swappiness here")
    found = integer(text)
    if found is None:
        return _SWAPPY.unreadable(text)
    swaps = _swaps(seen)
    if swaps is not None and not swaps[0]:
        return _SWAPPY.ok(f"{found}, without swap")
    if found <= _MOST_SWAPPY:
        return _SWAPPY.ok(str(found))
    return _SWAPPY.mendable(str(found), [Change(path=_SWAPPINESS, prior=text, value=_LEAST_SWAPPY)])


def _huge_pages(seen: Seen, file: str, subject: Subject) -> Judged:
    path = f"{_THP_FOLDER}/{file}"
    text = content(seen.tree, path)
    if text is None:
        return subject.unavailable("no transparent huge pages here")
    now = chosen(text)
    if now not in {"always", "defer", "defer+madvise", "madvise", "never"}:
        return subject.unreadable(text)
    off = file == "defrag" and chosen(content(seen.tree, f"{_THP_FOLDER}/enabled") or "") == "never"
    if now != "always" or off:
        return subject.ok(now)
    return subject.mendable(now, [Change(path=path, prior=now, value="madvise")])


def _merging(seen: Seen) -> Judged:
    text = content(seen.tree, _KSM_RUN)
    if text is None:
        return _KSM.unavailable("no KSM here")
    if text not in {"0", "1", "2"}:
        return _KSM.unreadable(text)
    if text != "1":
        return _KSM.ok("off")
    return _KSM.mendable("on", [Change(path=_KSM_RUN, prior=text, value="0")])


def _balancing(seen: Seen) -> Judged:
    mode = number(seen.tree, _BALANCING)
    if mode is None:
        return _NUMA.unavailable("no kernel.numa_balancing here")
    nodes = (
        len(seen.topology.nodes)
        if seen.topology
        else len(numbered(seen.tree, "sys/devices/system/node", "node"))
    )
    if mode == 0:
        return _NUMA.ok("off")
    if nodes < 2:
        return _NUMA.ok("on, without effect: one node")
    return _NUMA.mendable(
        f"on, {nodes} nodes", [Change(path=_BALANCING, prior=str(mode), value="0")]
    )
