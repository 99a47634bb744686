"""Check which programs and environments are available for measuring."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from corebound.machine.doctor.check import HostFacts, JudgedCheck, Subject


class _Tool(Struct, frozen=True, kw_only=True):
    """A tool, a program that it provides, its Debian package, and what is missing without it."""

    name: str
    program: str
    package: str
    lost: str


_TOOLS = (
    _Tool(
        name="taskset",
        program="taskset",
        package="util-linux",
        lost="cells that bind threads to CPUs are skipped",
    ),
    _Tool(
        name="numactl",
        program="numactl",
        package="numactl",
        lost="cells that bind memory to nodes are skipped",
    ),
    _Tool(
        name="perf",
        program="perf",
        package="linux-perf",
        lost="hardware counters cannot tell why a setting is slower",
    ),
    _Tool(
        name="java",
        program="java",
        package="default-jre-headless",
        lost="cells that serve with TorchServe are skipped",
    ),
    _Tool(
        name="ab",
        program="ab",
        package="apache2-utils",
        lost="cells whose client is ApacheBench cannot run",
    ),
    _Tool(
        name="hwloc",
        program="hwloc-calc",
        package="hwloc",
        lost="nothing independent can confirm the topology that the planner sees",
    ),
)
PROGRAMS = frozenset(tool.program for tool in _TOOLS)

_ENVIRONMENTS = Subject(
    check="environments",
    group="environments",
    why="cells that need an environment that is not made are skipped",
)


def check_tools(seen: HostFacts) -> Iterator[JudgedCheck]:
    """Check the tools, then the environments."""
    for tool in _TOOLS:
        yield _tool(tool, seen.tools)
    yield _environments(seen)


def _tool(tool: _Tool, found: frozenset[str] | None) -> JudgedCheck:
    subject = Subject(check=tool.name, group="tools", why=tool.lost)
    if found is None:
        return subject.unavailable("not looked for")
    if tool.program in found:
        return subject.ok("found")
    return subject.warning(
        "missing",
        fix=f"apt-get install {tool.package}",
        undo=f"apt-get remove {tool.package}",
    )


def _environments(seen: HostFacts) -> JudgedCheck:
    every = seen.environments
    if every is None:
        return _ENVIRONMENTS.unavailable("not looked for")
    missing = [name for name, made in every.items() if not made]
    if not missing:
        return _ENVIRONMENTS.ok(f"{len(every)} of {len(every)} made")
    return _ENVIRONMENTS.warning(
        f"{len(every) - len(missing)} of {len(every)} made, not {', '.join(missing)}",
        fix=f"corebound environment make {' '.join(missing)}",
    )
