"""Settings of the kernel that touch every process.

Source: Documentation/admin-guide/sysctl/kernel.rst, sched(7), personality(2),
capabilities(7).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from corebound.host.checkup.judged import Change, Judged, Seen, Subject
from corebound.host.checkup.reading import content, integer
from corebound.model.files import Tree

_LAYOUT = "proc/sys/kernel/randomize_va_space"
_AUTOGROUP = "proc/sys/kernel/sched_autogroup_enabled"
_PARANOID = "proc/sys/kernel/perf_event_paranoid"
_NO_RANDOMIZE = 0x0040000  # ADDR_NO_RANDOMIZE, personality(2)
_SYS_ADMIN, _PERFMON = 1 << 21, 1 << 38  # capabilities(7)

_ASLR = Subject(
    check="ASLR",
    group="kernel",
    why="every launch gets the same layout of memory: its luck or bad luck is in every figure"
    " instead of in their spread",
)
_GROUPS = Subject(
    check="autogroup",
    group="kernel",
    why="each session gets an equal share of the CPUs: `nice` does not keep the work of"
    " another session from a launch",
)
_COUNTERS = Subject(
    check="perf_event_paranoid",
    group="kernel",
    why="without privileges `perf stat` counts nothing that happens in the kernel, such as"
    " context switches, or nothing at all",
)


def judge(seen: Seen) -> Iterator[Judged]:
    """Address layout, autogroup, performance counters."""
    yield _layout(seen)
    yield _autogroup(seen)
    yield _counters(seen)


def _layout(seen: Seen) -> Judged:
    text = content(seen.tree, _LAYOUT)
    if text is None:
        return _ASLR.unavailable("no kernel.randomize_va_space here")
    words = {"0": "off", "1": "on, without the heap", "2": "on"}
    if text not in words:
        return _ASLR.unreadable(text)
    if text != "2":
        return _ASLR.mendable(words[text], [Change(path=_LAYOUT, prior=text, value="2")])
    if (_hexadecimal(seen.tree.read("proc/self/personality")) or 0) & _NO_RANDOMIZE:
        return _ASLR.warning(
            "off for this shell and what it starts",
            mend="start corebound without `setarch -R`, outside a debugger",
        )
    return _ASLR.ok(words[text])


def _hexadecimal(text: str | None) -> int | None:
    found = re.fullmatch(r"[0-9a-f]{1,16}", (text or "").strip())
    return int(found[0], 16) if found else None


def _autogroup(seen: Seen) -> Judged:
    text = content(seen.tree, _AUTOGROUP)
    if text is None:
        return _GROUPS.unavailable("no autogroup here")
    if text not in {"0", "1"}:
        return _GROUPS.unreadable(text)
    if text == "0":
        return _GROUPS.ok("off")
    return _GROUPS.mendable("on", [Change(path=_AUTOGROUP, prior=text, value="0")])


def _counters(seen: Seen) -> Judged:
    text = content(seen.tree, _PARANOID)
    if text is None:
        return _COUNTERS.unavailable("no performance counters here")
    level = integer(text)
    if level is None:
        return _COUNTERS.unreadable(text)
    if level <= 1:
        return _COUNTERS.ok(text)
    if _privileged(seen.tree) and not seen.sudo:
        return _COUNTERS.ok(f"{text}, which does not bind us: we are privileged")
    return _COUNTERS.mendable(text, [Change(path=_PARANOID, prior=text, value="1")])


def _privileged(tree: Tree) -> bool:
    status = tree.read("proc/self/status") or ""
    found = re.search(r"^CapEff:\s*([0-9a-f]{1,16})$", status, re.MULTILINE)
    return found is not None and bool(int(found[1], 16) & (_SYS_ADMIN | _PERFMON))
