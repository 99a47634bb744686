"""Specifies how GPUs are sampled, and what is computed between two samples of the host."""

import importlib
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.launch.host_sampler import (
    GpuSampler,
    HostSnapshot,
    ThreadTotals,
    gpu_sampler,
    total_threads,
    window_between,
)
from corebound.machine.cgroups import Throttling
from corebound.machine.procfs import CpuTicks, ResourceUsage
from corebound.records.telemetry import GpuUse, HostWindow
from support import needs
from support.texts import in_order

GIB = 1 << 30


class NVMLError(Exception):
    """As pynvml names what fails."""


def a_nvml(*busy: int | None, broken: str | None = None) -> SimpleNamespace:
    """What is called of pynvml, on GPUs of so much per cent; None: a part of one (MIG)."""

    def begin() -> None:
        if broken is not None:
            raise NVMLError(broken)

    def rates(index: int) -> SimpleNamespace:
        if busy[index] is None:
            raise NVMLError("Not Supported")
        return SimpleNamespace(gpu=busy[index], memory=0)

    return SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=begin,
        nvmlDeviceGetCount=lambda: len(busy),
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetUtilizationRates=rates,
        nvmlDeviceGetMemoryInfo=lambda index: SimpleNamespace(used=(index + 1) * GIB),
    )


def test_each_gpu_has_its_utilization_and_memory() -> None:
    watch = GpuSampler(a_nvml(90, 5))

    assert watch.reason is None
    assert watch.sample() == (
        GpuUse(id="0", busy_share=0.9, memory_bytes=GIB),
        GpuUse(id="1", busy_share=0.05, memory_bytes=2 * GIB),
    )


@pytest.mark.parametrize(
    ("nvml", "says"),
    [
        (a_nvml(1, broken="Driver Not Loaded"), "NVML: Driver Not Loaded"),
        (a_nvml(), "NVML shows no GPU"),
    ],
)
def test_a_library_without_gpus_gives_a_reason(nvml: SimpleNamespace, says: str) -> None:
    watch = GpuSampler(nvml)

    assert watch.reason == says
    assert watch.sample() == ()


def test_without_a_gpu_nothing_is_loaded_and_a_missing_package_is_named() -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    watch = gpu_sampler(gpus=0, load=lambda name: pytest.fail(f"loaded {name}"))

    assert in_order(watch.reason, "no NVIDIA GPU")
    assert watch.sample() == ()
    assert "pip install nvidia-ml-py" in str(gpu_sampler(gpus=1, load=missing).reason)


def test_nvidias_package_has_every_function_that_is_called() -> None:
    nvml = pytest.importorskip("pynvml", reason="needs the extra `gpu`: nvidia-ml-py")

    for name in (
        *("NVMLError", "nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"),
        *("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo"),
    ):
        assert callable(getattr(nvml, name))


@needs.a_gpu
def test_a_real_gpu_reports_its_use() -> None:
    pytest.importorskip("pynvml", reason="needs the extra `gpu`: nvidia-ml-py")
    watch = gpu_sampler(gpus=1, load=importlib.import_module)

    assert watch.reason is None
    assert all(one.memory_bytes for one in watch.sample())


MS = 1_000_000


def used(cpu_ms: int = 0, **counts: int) -> ResourceUsage:
    nothing = {"user_ns": 0, "system_ns": 0, "minor_faults": 0, "major_faults": 0, "rss_bytes": 0}
    return ResourceUsage(cpu_ns=cpu_ms * MS, **{**nothing, **counts})


def ticks_of(*, idle: int, steal: int) -> CpuTicks:
    return CpuTicks(cpus=2, busy=0, interrupts=0, idle=idle, steal=steal)


BEFORE = HostSnapshot(
    at_ns=1000 * MS,
    ticks=ticks_of(idle=0, steal=0),
    tick_ns=10 * MS,
    launch=used(),
    own_ns=0,
    threads=ThreadTotals(ran_ns=0, waited_ns=0),
    suspended_ns=7,
    pressure_us=(0, None, 0),
    throttled=(),
)


def half_a_second(**changes: Any) -> HostWindow:
    """On two CPUs; whatever is given is what the second look found."""
    now = replace(BEFORE, at_ns=1500 * MS, **changes)
    return window_between(BEFORE, now, origin_ns=1000 * MS, cpus=2)


def test_time_that_is_neither_idle_nor_of_the_launch_nor_of_corebound_is_foreign() -> None:
    found = half_a_second(ticks=ticks_of(idle=30, steal=5), launch=used(cpu_ms=400), own_ns=50 * MS)

    # 2 × 500 ms less 300 of rest, 50 stolen, 400 of the launch, 50 of corebound.
    assert found.foreign_ns == 200 * MS
    assert (found.from_ms, found.to_ms, found.steal_ns) == (0, 500, 50 * MS)


def test_the_cpu_and_the_thread_that_lost_most_are_known_beside_the_sums() -> None:
    stolen = CpuTicks(cpus=2, busy=0, interrupts=0, idle=30, steal=9, steal_of_each=(7, 2))
    waits = {7: 12 * MS, 8: 30 * MS, 9: 5 * MS}  # 9 started in between
    before = replace(
        BEFORE,
        ticks=stolen._replace(idle=0, steal=5, steal_of_each=(5, 0)),
        threads=ThreadTotals(ran_ns=0, waited_ns=31 * MS, waited_by_thread={7: MS, 8: 30 * MS}),
    )
    threads = ThreadTotals(ran_ns=0, waited_ns=47 * MS, waited_by_thread=waits)
    now = replace(before, at_ns=1500 * MS, ticks=stolen, threads=threads)

    found = window_between(before, now, origin_ns=0, cpus=2)

    assert (found.steal_ns, found.most_stolen_ns) == (40 * MS, 20 * MS)
    assert (found.waited_ns, found.most_waited_ns) == (16 * MS, 11 * MS)
    unknown = half_a_second(ticks=None, threads=None)
    assert (unknown.most_stolen_ns, unknown.most_waited_ns) == (None, None)


def test_use_counts_between_samples_and_memory_at_the_sample() -> None:
    found = half_a_second(
        launch=used(300, user_ns=200 * MS, system_ns=100 * MS, rss_bytes=4096, minor_faults=7),
        threads=ThreadTotals(ran_ns=300 * MS, waited_ns=20 * MS, voluntary=3, involuntary=2),
    )

    assert (found.ran_ns, found.user_ns, found.system_ns) == (300 * MS, 200 * MS, 100 * MS)
    assert (found.rss_bytes, found.minor_faults) == (4096, 7)
    assert found.waited_ns == 20 * MS
    # Nobody counted them at the first look.
    assert (found.voluntary, found.involuntary, found.migrations) == (None, None, None)


@pytest.mark.parametrize(
    ("ran_ms", "seen_ms", "waited_ns"),
    [
        (400, 380, 9),  # all but a twentieth was seen
        (400, 300, None),  # a quarter was not: it may have waited unseen
        (4, 1, 9),  # most was not, but that is less than a hundredth of a CPU
    ],
)
def test_waiting_is_known_if_nearly_all_cpu_time_was_sampled(
    ran_ms: int, seen_ms: int, waited_ns: int | None
) -> None:
    threads = ThreadTotals(ran_ns=seen_ms * MS, waited_ns=9)

    assert half_a_second(launch=used(ran_ms), threads=threads).waited_ns == waited_ns


def test_the_cgroup_that_throttled_longest_counts() -> None:
    before = replace(BEFORE, throttled=(Throttling(1, 10, 3), Throttling(5, 50, 9), None))
    now = replace(
        before,
        at_ns=1500 * MS,
        throttled=(Throttling(2, 40, 4), Throttling(9, 60, 15), Throttling(1, 1, 1)),
    )

    found = window_between(before, now, origin_ns=0, cpus=2)

    assert (found.throttled_periods, found.throttled_ns) == (1, 30)


def test_a_count_unknown_for_one_worker_is_unknown_in_the_total() -> None:
    one, other = (ThreadTotals(ran_ns=1, waited_ns=2, voluntary=n) for n in (3, None))

    assert total_threads([one, one]) == ThreadTotals(ran_ns=2, waited_ns=4, voluntary=6)
    assert total_threads([one, other]) == ThreadTotals(ran_ns=2, waited_ns=4)
    assert total_threads([one, None]) is None
    assert total_threads([]) is None
