"""The machine as `corebound topology` shows it."""

from __future__ import annotations

from corebound.cli.commands.plan import describe
from support.build import a_host


def test_a_machine_is_described_from_package_to_cpu() -> None:
    host = a_host(nodes=2, cores_per_node=1, cpus_per_core=2, allowed=frozenset({0, 1, 2}))

    assert describe(host).splitlines() == [
        "2 packages, 2 nodes, 2 cores, 4 CPUs, SMT, allowed 0-2",
        "package 0",
        "  node 0, 8.0 GiB",
        "    L3, 32 MiB",
        "      core 0: CPUs 0,2",
        "package 1",
        "  node 1, 8.0 GiB",
        "    L3, 32 MiB",
        "      core 0: CPUs 1,3, not allowed: 3",
    ]
