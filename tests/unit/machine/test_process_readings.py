"""Specifies how a running service is read from /proc, on saved trees that change meanwhile."""

from collections.abc import Callable
from pathlib import Path

import pytest

from corebound.errors import HostError, InputError
from corebound.launch.service_sampler import ServiceSampler
from corebound.machine import find_processes
from corebound.records.service_use import ServiceUse
from support.services import SECOND_NS, ProcTree


class Watch:
    """Watches a tree for two seconds of a clock that only the sampler's pauses advance."""

    def __init__(self, tree: ProcTree, *roots: int) -> None:
        self.now_ns = 0
        self.sampler = ServiceSampler(
            roots, root=tree.root, pause=self._advance, clock_ns=lambda: self.now_ns
        )
        self.meanwhile: Callable[[], object] = lambda: None

    def _advance(self, duration_s: float) -> None:
        if self.now_ns == 0:
            self.meanwhile()
        self.now_ns += round(duration_s * SECOND_NS)

    def __call__(self) -> ServiceUse:
        return self.sampler.watch(2)


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    tree = ProcTree(tmp_path)
    tree.process(100)
    tree.thread(100, 100, run=5 * SECOND_NS)
    return tree


def test_a_thread_used_what_it_has_now_less_what_it_had(tree: ProcTree) -> None:
    tree.thread(100, 101, run=7, wait=1, name="worker-1")
    watch = Watch(tree, 100)
    watch.meanwhile = lambda: tree.thread(100, 101, run=1_000_007, wait=501, name="worker-1")

    (process,) = watch().processes

    assert [(one.name, one.run_ns, one.wait_ns) for one in process.threads] == [
        ("worker-1", 1_000_000, 500),
        ("app", 0, 0),
    ]


def test_descendants_belong_to_the_service_and_others_do_not(tree: ProcTree) -> None:
    for pid, parent in ((101, 100), (102, 101), (103, 1)):
        tree.process(pid, parent=parent)
        tree.thread(pid, pid)

    use = Watch(tree, 100)()

    assert [one.pid for one in use.processes] == [100, 101, 102]


def test_only_variables_about_threads_and_memory_are_kept(tree: ProcTree) -> None:
    tree.process(
        100, environ="OMP_NUM_THREADS=4\0AWS_SECRET_ACCESS_KEY=x\0OMP_TOKEN=y\0LD_PRELOAD=a"
    )

    (process,) = Watch(tree, 100)().processes

    assert process.variables == {"OMP_NUM_THREADS": "4", "LD_PRELOAD": "a"}


def test_one_library_in_two_folders_is_loaded_twice(tree: ProcTree) -> None:
    tree.process(
        100,
        maps="7f0-7f1 r-xp /a/libgomp.so.1\n7f2-7f3 r-xp /b/libgomp.so.1\n7f4 x /c/libc.so.6\n"
        "7f6 x /d/_polars_runtime.abi3.so",
    )

    (process,) = Watch(tree, 100)().processes

    assert process.libraries == {
        "_polars_runtime.abi3.so": "/d/_polars_runtime.abi3.so",
        "libgomp.so.1": "/a/libgomp.so.1",
        "libgomp.so.1 (copy 2)": "/b/libgomp.so.1",
    }


def test_the_runtime_in_a_program_of_go_is_a_library(tree: ProcTree) -> None:
    tree.process(100)
    tree.write("proc/100/exe", "\x7fELF".ljust(3980, "\0") + "Go\0\0")

    (process,) = Watch(tree, 100)().processes

    assert list(process.libraries) == ["Go runtime"]


def test_what_cannot_be_read_is_named_with_what_would_allow_it(tree: ProcTree) -> None:
    tree.remove("proc/100/environ")

    use = Watch(tree, 100)()

    (hidden,) = [one for one in use.hidden if "100" in one.what]
    assert "variables" in hidden.what
    assert "root" in hidden.fix


def test_a_process_that_took_over_the_id_is_another_one(tree: ProcTree) -> None:
    watch = Watch(tree, 100)
    watch.meanwhile = lambda: tree.process(100, started=901)

    with pytest.raises(HostError, match="ended"):
        watch()


def test_a_name_may_contain_anything(tree: ProcTree) -> None:
    tree.process(100, name="a) R 1 (\x1b[2J")

    (process,) = Watch(tree, 100)().processes

    assert process.name == "a) R 1 (\x1b[2J"


def test_threads_that_ran_are_read_even_among_thousands(tree: ProcTree) -> None:
    for tid in range(101, 1_000):
        tree.thread(100, tid)
    watch = Watch(tree, 100)
    watch.meanwhile = lambda: tree.thread(100, 999, run=SECOND_NS)

    (process,) = watch().processes

    assert process.thread_count == 900
    assert process.threads[0].tid == 999
    assert len(process.threads) < 600


def test_processes_are_found_by_a_part_of_their_command_line(tree: ProcTree) -> None:
    tree.process(200, command="uvicorn\0app:app\0")
    tree.process(201, parent=200, command="uvicorn\0worker\0")

    found = find_processes.of_name("uvicorn", own=1, root=tree.root)

    assert found == (200,)


def test_the_asking_shell_does_not_match_its_own_words(tree: ProcTree) -> None:
    tree.process(300, command="sh\0-c\0inspect --name uvicorn")
    tree.process(301, parent=300, command="inspect\0--name\0uvicorn")

    with pytest.raises(InputError):
        find_processes.of_name("uvicorn", own=301, root=tree.root)


def test_a_cgroup_that_vanishes_meanwhile_has_a_quota_without_counts(tree: ProcTree) -> None:
    tree.process(100, cgroup="0::/app\n")
    tree.write("proc/self/mountinfo", "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n")
    tree.write("sys/fs/cgroup/app/cpu.max", "50000 100000\n")
    tree.write("sys/fs/cgroup/app/cpu.stat", "nr_periods 9\nnr_throttled 3\nthrottled_usec 2\n")
    watch = Watch(tree, 100)
    watch.meanwhile = lambda: tree.remove("sys/fs/cgroup/app/cpu.stat")

    (group,) = watch().quotas

    assert (group.quota.cpus, group.quota.periods) == (0.5, None)
    assert group.is_own


def test_what_children_used_before_they_ended_meanwhile_is_not_counted_again(
    tree: ProcTree,
) -> None:
    tree.process(101, parent=100, ticks=500)
    tree.thread(101, 101)
    watch = Watch(tree, 100)

    def end() -> None:
        # The parent has waited for it: 500 ticks of before, and 20 of meanwhile.
        tree.process(100, ticks=520)
        tree.remove("proc/101/stat")

    watch.meanwhile = end

    (process,) = watch().processes

    assert process.cpu_ns == 20 * 10_000_000


def test_a_kernel_that_shows_no_threads_is_told(tree: ProcTree) -> None:
    tree.remove("proc/100/task/100/schedstat")

    use = Watch(tree, 100)()

    assert "threads" in " ".join(one.what for one in use.hidden)
