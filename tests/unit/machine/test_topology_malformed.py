"""Whatever a tree's files hold, reading it ends in a topology or in a HostError."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.errors import HostError
from corebound.machine.discovery import live_topology, saved_topology, topology
from corebound.machine.topology import MOST_CPUS, Topology
from support.machine_trees import UNUSUAL_MACHINES, MemoryTree, a_tree

RICH = {
    **UNUSUAL_MACHINES["a cgroup v1 cpuset, mounted elsewhere"],
    **a_tree(cpus=range(8), online="0-7", cache=lambda _: range(8), nodes={0: range(8)}),
    "sys/devices/system/cpu/cpu0/topology/die_id": "0\n",
    "sys/devices/system/node/online": "0-1\n",
    "sys/devices/system/node/node0/distance": "10 20\n",
    "sys/devices/cpu_core/cpus": "0-3\n",
    "sys/devices/cpu_atom/cpus": "4-7\n",
}

NASTY = st.one_of(
    st.none(),
    st.sampled_from(
        ["", "\n", "-1", "-1\n", "0-", "7-0", "0-99999999999", "ffffffff", "zz", "1,,2", "0x1",
         "\x00", "²", "٣", "1e9", "0-7 ", "65536", "9" * 30, "0-65535", "ffffffff," * 3000]
    ),
    st.text(max_size=20),
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(sorted(RICH)), NASTY, max_size=12))
def test_any_content_is_read_or_refused_with_a_reason(changes: dict[str, str | None]) -> None:
    changed = {**RICH, **changes}
    files = {path: text for path, text in changed.items() if text is not None}

    found = read_or_refused(files)

    if isinstance(found, HostError):
        assert found.fix
    else:
        numbers = [cpu.id for cpu in found.cpus]
        assert numbers == sorted(set(numbers))
        assert all(
            cpu.cache is None or cpu.id in found.caches[cpu.cache].cpus for cpu in found.cpus
        )
        assert not set(numbers) & set(found.offline)


def read_or_refused(files: dict[str, str]) -> Topology | HostError:
    try:
        return topology(MemoryTree(files), where="a tree")
    except HostError as error:
        return error


def test_directories_that_only_look_like_cpus_are_passed_over() -> None:
    names = (
        "cpufreq",
        "cpuidle",
        "cpu",
        "cpu01",
        "cpu-1",
        "cpu1x",
        f"cpu{MOST_CPUS}",
        "cpu9999999",
    )
    files = a_tree(extra={f"sys/devices/system/cpu/{name}/topology/core_id": "0" for name in names})

    assert [cpu.id for cpu in topology(MemoryTree(files), where="").cpus] == [0, 1, 2, 3]


def test_a_directory_that_is_not_there_is_named() -> None:
    with pytest.raises(HostError, match=r"nowhere/at-all: there is no such directory"):
        saved_topology(Path("nowhere/at-all"))


def test_an_empty_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(HostError) as raised:
        saved_topology(tmp_path)

    assert str(raised.value).startswith(str(tmp_path))


def test_a_file_in_place_of_a_directory_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "sys/devices/system/cpu/cpu0").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu/cpu0/topology").write_text("0")
    (tmp_path / "sys/devices/system/cpu/cpu1/topology/core_id").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu/online").write_bytes(b"\xff\xfe")

    assert [cpu.id for cpu in saved_topology(tmp_path).cpus] == [1]


def test_this_machine_has_a_cpu_for_us() -> None:
    assert live_topology().allowed
