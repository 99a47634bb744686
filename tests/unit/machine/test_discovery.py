"""Specifies the topology read from saved, made-up and malformed /sys trees."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from corebound.errors import HostError
from corebound.machine.discovery import instructions as instruction_sets
from corebound.machine.discovery import saved_topology, topology
from corebound.machine.topology import MOST_CPUS, Topology, cpu_list
from corebound.planning.models import Placement
from corebound.planning.placement import place
from corebound.scenario.cell import Binding, NamedMode
from support.build import a_cell
from support.hwloc import HWLOC_ANSWERS, agree, our_answers
from support.machine_trees import (
    CPU,
    NODE,
    UNUSUAL_MACHINES,
    MemoryTree,
    a_tree,
    cpu_mask,
    machine_files,
    memory_tree,
    saved_machines,
    without_topology,
    write_files,
)

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
def test_any_content_is_read_or_rejected_with_a_reason(changes: dict[str, str | None]) -> None:
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


def test_directories_that_only_look_like_cpus_are_skipped() -> None:
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


def test_a_missing_directory_is_named() -> None:
    with pytest.raises(HostError, match=r"nowhere/at-all: there is no such directory"):
        saved_topology(Path("nowhere/at-all"))


class Disguised(Struct, frozen=True, kw_only=True):
    """A machine's files, in part virtual or missing, and the truth of its kernel."""

    files: dict[str, str]
    online: frozenset[int]
    affinity: frozenset[int]


@st.composite
def disguised(draw: st.DrawFn) -> Disguised:
    """A machine whose /sys is virtual in one of the ways of containers, or is not."""
    count = draw(st.integers(1, 12))
    present = frozenset(range(count))
    online = draw(st.frozensets(st.sampled_from(sorted(present)), min_size=1))
    effective = draw(st.frozensets(st.sampled_from(sorted(online)), min_size=1))
    affinity = draw(st.frozensets(st.sampled_from(sorted(effective)), min_size=1))
    some = draw(st.frozensets(st.sampled_from(sorted(present))))
    siblings = draw(st.sampled_from([_alone, _pair]))
    files = a_tree(cpus=online, siblings=siblings, nodes={0: present})
    files |= {f"{CPU}/cpu{cpu}/crash_notes": "0\n" for cpu in present}
    if draw(st.booleans()):
        files |= {f"{CPU}/cpu{cpu}/online": f"{cpu in online:d}\n" for cpu in present - {0}}
    files |= {
        f"{CPU}/online": draw(
            st.sampled_from([cpu_list(online), cpu_list(some), "", "0\n", "\n", "?", "0-3"])
        ),
        f"{CPU}/offline": cpu_list(present - online),
        f"{CPU}/possible": f"0-{count + 3}\n",
        f"{CPU}/present": f"0-{count - 1}\n",
        **draw(
            st.sampled_from(
                [
                    {},
                    {"sys/fs/cgroup/cpuset.cpus.effective": cpu_list(effective)},
                    {"sys/fs/cgroup/cpuset/cpuset.cpus": cpu_list(effective | (present - online))},
                ]
            )
        ),
        # A task that nobody bound is allowed on all CPUs that could be plugged in.
        "proc/self/status": "Cpus_allowed_list:\t"
        + (f"0-{count + 3}" if affinity == online else cpu_list(affinity))
        + "\n",
    }
    match draw(st.sampled_from(["whole", "few folders", "no topology", "no list", "no /proc"])):
        case "few folders":
            hidden = tuple(f"{CPU}/cpu{cpu}/" for cpu in some)
            files = {path: text for path, text in files.items() if not path.startswith(hidden)}
        case "no topology":
            files = {path: text for path, text in files.items() if "/topology/" not in path}
        case "no list":
            del files[f"{CPU}/online"]
        case "no /proc":
            del files["proc/self/status"]
            files[f"{CPU}/online"] = cpu_list(online)
    return Disguised(files=files, online=online, affinity=affinity)


def _alone(cpu: int) -> tuple[int, ...]:
    return (cpu,)


def _pair(cpu: int) -> tuple[int, ...]:
    return (cpu // 2 * 2, cpu // 2 * 2 + 1)


@given(disguised())
def test_affinity_decides_which_cpus_of_this_machine_are_used(machine: Disguised) -> None:
    host = topology(MemoryTree(machine.files), where="", affinity=machine.affinity)

    assert {cpu.id for cpu in host.allowed} == machine.affinity


@given(disguised(), st.sampled_from(get_args(NamedMode)))
def test_no_cpu_of_a_saved_machine_is_planned_that_is_offline_or_not_allowed(
    machine: Disguised, mode: NamedMode
) -> None:
    host = topology(MemoryTree(machine.files), where="")
    placement = place(a_cell(binding=Binding(mode=mode)), host)

    assert host.allowed
    if isinstance(placement, Placement):
        assert machine.online.issuperset(*(slot.cpus for slot in placement.slots))
        if "proc/self/status" in machine.files:
            assert machine.affinity.issuperset(*(slot.cpus for slot in placement.slots))


@pytest.mark.parametrize(
    ("online", "extra"),
    [
        ("0", {"proc/self/status": "Cpus_allowed_list:\t6\n"}),
        ("0", {"sys/fs/cgroup/cpuset.cpus.effective": "6\n"}),
        ("0-3", {"proc/self/status": "Cpus_allowed_list:\t6-7\n"}),
        ("\n", {"proc/self/status": "Cpus_allowed_list:\t6\n"}),
        # lxcfs numbers the folders anew.
        ("0", {"proc/self/status": "Cpus_allowed_list:\t9\n"}),
    ],
)
def test_a_virtual_sys_is_named_and_does_not_hide_allowed_cpus(
    online: str, extra: dict[str, str]
) -> None:
    host = topology(
        MemoryTree(a_tree(cpus=range(8), extra={f"{CPU}/online": online, **extra})), where=""
    )

    allowed = extra.get("proc/self/status", "6").rpartition("\t")[2].strip()
    assert cpu_list(cpu.id for cpu in host.allowed) == allowed
    assert "virtual" in host.notes[0]


def test_a_cpu_that_is_offline_stays_unused_whatever_the_limits_list() -> None:
    files = a_tree(
        cpus=range(8),
        online="0-5",
        extra={
            **without_topology(6),
            f"{CPU}/cpu6/online": "0\n",
            f"{CPU}/cpu7/online": "0\n",
            "proc/self/status": "Cpus_allowed_list:\t0-63\n",
            "sys/fs/cgroup/cpuset/cpuset.cpus": "0-7\n",
        },
    )

    host = topology(MemoryTree(files), where="")

    assert cpu_list(cpu.id for cpu in host.allowed) == "0-5"
    assert host.offline == (6, 7)
    assert not host.notes


RECORDED: dict[str, Any] = json.loads(HWLOC_ANSWERS.read_text(encoding="utf-8"))


def read(machine: str) -> Topology:
    return topology(memory_tree(machine_files(machine)), where=machine)


@pytest.mark.parametrize("machine", saved_machines())
def test_the_topology_of_a_saved_machine_equals_hwloc_s(machine: str) -> None:
    ours, theirs = our_answers(read(machine)), RECORDED[machine]

    assert agree(ours, theirs), (ours, theirs)


def test_a_bare_sys_tree_is_read_without_cgroups(tmp_path: Path) -> None:
    machine = "hwloc_16amd64-8n2c-cpusets"
    host = saved_topology(write_files(machine_files(machine), tmp_path) / "sys")

    assert len(host.allowed) == len(host.cpus) == 15  # of 16 one is offline
    assert all(node.allowed for node in host.nodes)


def test_the_hybrid_processor_shows_both_kinds_of_core() -> None:
    host = read("hwloc_20em64t-hybrid-1p6c2t+2ca4co1t")  # 6 cores × 2 and 8 × 1, by its name

    assert [cpu.id for cpu in host.cpus if cpu.kind == "performance"] == list(range(12))
    assert [cpu.id for cpu in host.cpus if cpu.kind == "efficiency"] == list(range(12, 20))


def read_shape(files: dict[str, str]) -> Topology:
    return topology(MemoryTree(files), where="a tree")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Only online CPUs in our cpuset are allowed.
        ("an offline CPU known by its own file", {"pus": "0-1,3"}),
        ("an offline CPU known by its missing topology", {"pus": "0-2,5-7"}),
        ("CPU 0 offline, its node without CPUs", {"pus": "4-7"}),
        ("a cpuset of its own file system", {"pus": "1,4-6"}),
        ("a cgroup v1 cpuset, mounted elsewhere", {"pus": "0-2"}),
        ("a cgroup v1 cpuset without prefix", {"pus": "3-4"}),
        ("a cgroup v2 cpuset", {"pus": "4-5"}),
        ("cgroups v1 and v2 at once", {"pus": "2,5"}),
        # Sibling lists define cores and packages.
        ("core numbers that repeat in each cluster", {"cores": 8}),
        ("core numbers that repeat in each die", {"cores": 8, "packages": ["0-7"]}),
        (
            "books whose sockets have the same numbers",
            {"cores": 8, "packages": ["0-1", "2-3", "4-5", "6-7"]},
        ),
        ("numbers that are all -1", {"cores": 4, "packages": ["0-3", "4-7"]}),
        ("siblings with different core numbers", {"cores": 4}),
        ("siblings in AMD compute units", {"cores": 8}),
        ("more than 64 CPUs", {"cores": 40}),
        # A last-level cache without a size is replaced by the next level.
        ("an L3 of no size", {"caches": ["0-3", "4-7"]}),
        (
            "node numbers with gaps and two digits",
            {"nodes": {"0": "0-1", "8": "2-3", "10": "4-5", "252": "6-7"}},
        ),
    ],
)
def test_an_irregular_machine_has_these_parts(name: str, expected: dict[str, Any]) -> None:
    answers = our_answers(read_shape(UNUSUAL_MACHINES[name]))
    answers["cores"] = len(answers["cores"])

    assert {part: answers[part] for part in expected} == expected


@pytest.mark.parametrize("name", UNUSUAL_MACHINES)
def test_every_core_of_an_irregular_machine_has_its_own_key(name: str) -> None:
    host = read_shape(UNUSUAL_MACHINES[name])

    # Four machines have as many cores as `our_answers` finds sets of siblings.
    assert len({cpu.core for cpu in host.allowed}) == len(our_answers(host)["cores"])
    assert [cpu.id for cpu in host.cpus] == sorted({cpu.id for cpu in host.cpus})


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({f"{NODE}/node1/cpumap": cpu_mask(range(3, 8))}, "CPUs 3"),
        ({f"{NODE}/node1/cpumap": cpu_mask(range(4, 10))}, "CPUs 8-9"),
        ({f"{NODE}/node1/cpumap": cpu_mask(range(5, 8))}, "CPUs 4"),
        ({f"{NODE}/has_memory": "0\n"}, "has_memory"),
        ({f"{NODE}/has_memory": "0-2\n"}, "has_memory"),
        ({f"{NODE}/node1/distance": ""}, "nodes 1"),
        ({f"{NODE}/node1/distance": "20 10 20\n"}, "nodes 1"),
        ({f"{NODE}/node1/distance": "30 10\n"}, "direction"),
    ],
)
def test_contradictory_tables_of_nodes_are_named(changes: dict[str, str], named: str) -> None:
    right = {
        f"{NODE}/node0/distance": "10 20\n",
        f"{NODE}/node1/distance": "20 10\n",
        f"{NODE}/has_memory": "0-1\n",
    }
    nodes = {0: range(4), 1: range(4, 8)}

    assert not read_shape(a_tree(cpus=range(8), nodes=nodes, extra=right)).notes
    (note,) = read_shape(a_tree(cpus=range(8), nodes=nodes, extra={**right, **changes})).notes
    assert named in note


def memory(total_kb: int, *nodes_kb: int) -> Topology:
    return read_shape(
        a_tree(
            cpus=range(8),
            nodes={node: (2 * node, 2 * node + 1) for node in range(len(nodes_kb))},
            memory_kb=dict(enumerate(nodes_kb)),
            extra={"proc/meminfo": f"MemTotal: {total_kb} kB\n"} if total_kb else {},
        )
    )


@given(st.integers(1, 1 << 40), st.lists(st.integers(0, 1 << 40), max_size=4))
def test_a_machine_has_one_size_of_memory_and_nodes_that_do_not_contradict_it(
    total_kb: int, nodes_kb: list[int]
) -> None:
    host = memory(total_kb, *nodes_kb)

    sizes = [node.memory_bytes for node in host.nodes]
    assert host.memory_bytes == total_kb << 10
    assert [size == 0 for size in sizes] == [kb == 0 and any(nodes_kb) for kb in nodes_kb]
    known = [size for size in sizes if size is not None]
    if len(known) == len(sizes) and any(known):
        assert sum(known) == pytest.approx(host.memory_bytes, rel=0.06)


def test_hot_plugged_memory_is_the_only_nodes_and_the_reason_is_given() -> None:
    plugged = memory(132_000_000, 4_700_000)

    assert [node.memory_bytes for node in plugged.nodes] == [132_000_000 << 10]
    assert plugged.memory_note
    assert memory(0, 4_700_000).memory_bytes == 4_700_000 << 10
    assert not memory(132_000_000, 130_000_000).memory_note  # what the kernel reserves


def test_without_sibling_lists_ids_define_cores() -> None:
    files = a_tree(core=lambda cpu: cpu % 2, package=lambda _: 3)
    bare = {path: text for path, text in files.items() if not path.endswith("_siblings")}

    assert our_answers(read_shape(bare))["cores"] == ["0,2", "1,3"]


def test_a_group_without_its_own_file_has_its_parent_s_limits() -> None:
    files = a_tree(
        cpus=range(8),
        extra={
            "proc/self/cgroup": "0::/pod/box\n",
            "sys/fs/cgroup/cpuset.cpus.effective": "0-7\n",
            "sys/fs/cgroup/pod/cpuset.cpus.effective": "6-7\n",
        },
    )

    assert our_answers(read_shape(files))["pus"] == "6-7"


def test_in_a_container_the_mount_itself_is_our_group() -> None:
    files = a_tree(
        cpus=range(8),
        extra={
            "proc/self/cpuset": "/docker/0123456789ab\n",
            "sys/fs/cgroup/cpuset/cpuset.cpus": "2-3\n",
        },
    )

    assert our_answers(read_shape(files))["pus"] == "2-3"


def test_a_group_outside_our_namespace_has_the_mount_s_limits() -> None:
    files = a_tree(
        cpus=range(8),
        extra={"proc/self/cpuset": "/../..\n", "sys/fs/cgroup/cpuset.cpus.effective": "1\n"},
    )

    assert our_answers(read_shape(files))["pus"] == "1"


def kinds(extra: dict[str, str]) -> str:
    letters = {"performance": "P", "efficiency": "E", None: "-"}
    return "".join(letters[cpu.kind] for cpu in read_shape(a_tree(cpus=range(6), extra=extra)).cpus)


def each(name: str, values: list[int]) -> dict[str, str]:
    return {f"{CPU}/cpu{cpu}/{name}": f"{value}\n" for cpu, value in enumerate(values)}


def test_intel_s_monitoring_units_distinguish_core_types() -> None:
    units = {"cpu_core": "0-1", "cpu_atom": "2-4", "cpu_lowpower": "5"}

    assert kinds({f"sys/devices/{unit}/cpus": f"{on}\n" for unit, on in units.items()}) == "PPEEEE"


def test_the_widest_gap_in_capacity_distinguishes_core_types() -> None:
    assert kinds(each("cpu_capacity", [250, 250, 900, 900, 900, 1024])) == "EEPPPP"


def test_the_maximum_frequency_distinguishes_core_types_of_equal_base_frequency() -> None:
    boost = each("cpufreq/cpuinfo_max_freq", [5_000_000] * 2 + [3_900_000] * 4)
    base = each("cpufreq/base_frequency", [1_900_000] * 2 + [1_400_000] * 4)

    assert kinds(boost) == kinds({**boost, **base}) == "PPEEEE"


@pytest.mark.parametrize("files", [{}, {f"{CPU}/online": "\n", f"{CPU}/cpu0/online": "0\n"}])
def test_a_tree_without_cpus_is_a_host_error_with_a_fix(files: dict[str, str]) -> None:
    with pytest.raises(HostError, match=r"a tree: .*no CPU that is online.\n  Name a directory"):
        read_shape(files)


@pytest.mark.parametrize(
    ("text", "instructions"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx512_bf16\n\nprocessor\t: 1\n", {"fpu", "avx512_bf16"}),
        ("processor\t: 0\nFeatures\t: asimd bf16\n", {"asimd", "bf16"}),
        ("processor\t: 0\n", set()),
    ],
)
def test_instruction_sets_are_those_of_the_first_cpu(text: str, instructions: set[str]) -> None:
    assert instruction_sets(MemoryTree({"proc/cpuinfo": text})) == instructions
