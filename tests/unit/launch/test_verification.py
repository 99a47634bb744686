"""Specifies which deviations from a request make a launch invalid."""

from typing import Any

import pytest
from msgspec.structs import replace

from corebound.launch.process_settings import huge_page_violations, preload_violations
from corebound.launch.verification import binding_violations, quota_violations
from corebound.machine.topology import CpuId
from corebound.planning.models import Command, Placement
from corebound.records.launch_record import HugePages, Worker
from corebound.records.telemetry import Pauses, QuotaUse
from corebound.scenario.cell import HugePageMode, OpenmpRuntime
from support.build import a_placement, a_quota_use, a_thread, a_worker
from support.texts import in_order


def faults(
    placement: Placement,
    worker: Worker,
    *,
    env: tuple[tuple[str, str], ...] = (),
    command: tuple[tuple[CpuId, ...], ...] = (),
) -> tuple[str, ...]:
    return binding_violations(
        placement, (Command(argv=("python",), env=env),), (worker,), (command,)
    )


OFF_SLOT = a_worker(threads=(a_thread(tid=7, name="pool", allowed=(0,), stays=((3, 0, 5),)),))


@pytest.mark.parametrize(
    ("placement", "worker", "more", "facts"),
    [
        (a_placement(cpus=(0,)), OFF_SLOT, {}, ("thread 7", "pool", "CPUs 3", "outside")),
        (a_placement(), a_worker(threads_asked=4, threads_used=2), {}, ("4 threads", "uses 2")),
        (
            a_placement(),
            replace(a_worker(), environment={"OMP_NUM_THREADS": "1"}),
            {"env": (("OMP_NUM_THREADS", "4"),)},
            ("OMP_NUM_THREADS=4", "has 1"),
        ),
        (
            a_placement(cpus=(0,)),
            a_worker(threads=()),
            {"command": ((CpuId(1),),)},
            ("command", "CPUs 1", "slot is 0"),
        ),
    ],
    ids=["off its slot", "a wrong thread count", "a changed variable", "a command off its slot"],
)
def test_a_deviation_from_the_request_is_named(
    placement: Placement, worker: Worker, more: dict[str, Any], facts: tuple[str, ...]
) -> None:
    (told,) = faults(placement, worker, **more)

    assert in_order(told, *facts)


def test_an_unbound_cell_and_variables_that_control_no_threads_are_not_checked() -> None:
    assert faults(a_placement(cpus=(0, 1), bound=False), OFF_SLOT) == ()
    assert faults(a_placement(), a_worker(), env=(("GREETING", "hello"),)) == ()


def test_a_framework_that_pins_its_threads_may_use_a_part_of_the_slot_only() -> None:
    placement = a_placement(cpus=(0, 1))
    inside, outside = (
        a_worker(threads=(a_thread(allowed=allowed, stays=()),)) for allowed in ((1,), (1, 2))
    )

    assert faults(placement, replace(inside, pins_threads=True)) == ()
    assert faults(placement, replace(outside, pins_threads=True)) != ()
    assert faults(placement, inside) != ()


def test_a_launch_that_ran_while_it_was_paused_is_a_violation() -> None:
    def with_pauses(cpu_ns: int) -> tuple[str, ...]:
        pauses = Pauses(duration_ns=1_000_000_000, cpu_ns=cpu_ns)
        return binding_violations(a_placement(), (), (), (), pauses=pauses)

    assert with_pauses(20_000_000) == ()
    (evidence,) = with_pauses(21_000_000)
    assert in_order(evidence, "21.0 ms", "1.00 s", "measure.alternate")
    # Stopping a launch takes some CPU time, however short the pause.
    assert Pauses(duration_ns=349_000, cpu_ns=46_200).were_quiet
    assert not Pauses(duration_ns=349_000, cpu_ns=349_000).were_quiet


def quota_faults(use: QuotaUse | None, *, ran_ms: int | None = 1_000) -> list[str]:
    """Half a CPU for two seconds of a launch on two CPUs."""
    ran_ns = None if ran_ms is None else ran_ms * 1_000_000
    return list(quota_violations(0.5, use, ran_ns=ran_ns, timed_ns=2_000_000_000, cpus=2))


def test_a_quota_that_was_read_back_and_held_is_no_violation() -> None:
    assert quota_faults(a_quota_use()) == []
    assert quota_faults(a_quota_use(), ran_ms=None) == []
    # What is left of the period before, and a slice on each CPU.
    assert quota_faults(a_quota_use(), ran_ms=1_100) == []
    # A cgroup that counts no period may have done little.
    assert quota_faults(a_quota_use(periods=0), ran_ms=100) == []
    assert list(quota_violations(None, None, ran_ns=9, timed_ns=1, cpus=1)) == []


@pytest.mark.parametrize(
    ("use", "ran_ms", "facts"),
    [
        (None, 1_000, ("0.5 CPUs", "none")),
        (a_quota_use(cpus=1.5), 1_000, ("0.5 CPUs", "1.5 CPUs")),
        (a_quota_use(), 1_200, ("1.20 s", "2.00 s", "0.5 CPUs")),
        (a_quota_use(periods=0), 1_000, ("0.5 CPUs", "no period")),
    ],
    ids=["no cgroup had it", "another", "more time than it allows", "no period was counted"],
)
def test_a_quota_that_did_not_hold_is_a_violation(
    use: QuotaUse | None, ran_ms: int, facts: tuple[str, ...]
) -> None:
    (told,) = quota_faults(use, ran_ms=ran_ms)

    assert in_order(told, *facts)


def library_faults(
    *libraries: str, openmp: OpenmpRuntime | None = None, preload: str = ""
) -> tuple[str, ...]:
    env = (("LD_PRELOAD", preload),) if preload else ()
    worker = replace(a_worker(), libraries=libraries)
    return tuple(preload_violations(Command(argv=("python",), env=env), worker, openmp))


@pytest.mark.parametrize(
    ("openmp", "libraries"),
    [
        (None, ()),
        ("gnu", ("libgomp-e985bcbb.so.1.0.0",)),
        # The framework's own is loaded too, but the preloaded one comes first.
        ("intel", ("libgomp.so.1.0.0", "libiomp5.so")),
        ("llvm", ("libgomp.so.1.0.0", "libomp.so.5")),
    ],
)
def test_an_openmp_runtime_that_is_loaded_violates_nothing(
    openmp: OpenmpRuntime | None, libraries: tuple[str, ...]
) -> None:
    assert library_faults(*libraries, openmp=openmp) == ()


def test_a_library_that_was_set_but_is_not_used_is_named_with_the_one_that_is() -> None:
    (other,) = library_faults("libgomp.so.1.0.0", openmp="intel")
    (second,) = library_faults("libiomp5.so", "libgomp.so.1.0.0", openmp="gnu")
    (allocator,) = library_faults(preload="libjemalloc.so.2")

    assert in_order(other, "`intel`", "has loaded libgomp.so.1.0.0")
    assert in_order(second, "`gnu`", "also loaded libiomp5.so")
    assert in_order(allocator, "libjemalloc.so.2", "not loaded")
    assert library_faults("libjemalloc.so.2", preload="libomp.so.5:libjemalloc.so.2") == ()


@pytest.mark.parametrize(
    ("wanted", "disabled", "size", "unadvised", "faults"),
    [
        (None, True, 0, 0, 0),
        ("never", True, 0, 0, 0),
        # A kernel before 5.0 does not say whether they are disabled.
        ("never", None, 0, 0, 0),
        ("never", False, 0, 0, 1),
        ("never", False, 4096, 0, 2),
        ("madvise", False, 4096, 0, 0),
        ("madvise", False, 4096, 2048, 1),
        ("madvise", True, 0, 0, 1),
        ("always", False, 4096, 4096, 0),
        ("always", True, 0, 0, 1),
    ],
)
def test_huge_pages_are_those_that_were_set(
    wanted: HugePageMode | None, disabled: bool | None, size: int, unadvised: int, faults: int
) -> None:
    pages = HugePages(disabled=disabled, size_bytes=size, unadvised_bytes=unadvised)

    found = tuple(huge_page_violations(replace(a_worker(), huge_pages=pages), wanted))

    assert len(found) == faults
