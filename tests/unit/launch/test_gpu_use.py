"""GPU use over time: what NVML tells, behind the seam that a GPU's absence leaves."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import pytest

from corebound.launch.host_sampler import GpuSampler, gpu_sampler
from corebound.records.telemetry import GpuUse
from support import needs

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


def test_each_gpu_is_told_by_how_busy_it_is_and_what_it_holds() -> None:
    watch = GpuSampler(a_nvml(90, 5))

    assert watch.reason is None
    assert watch.sample() == (
        GpuUse(id="0", busy_share=0.9, memory_bytes=GIB),
        GpuUse(id="1", busy_share=0.05, memory_bytes=2 * GIB),
    )


def test_what_a_gpu_does_not_tell_is_absent_and_not_zero() -> None:
    assert GpuSampler(a_nvml(None)).sample() == (GpuUse(id="0", busy_share=None, memory_bytes=GIB),)


@pytest.mark.parametrize(
    ("nvml", "says"),
    [
        (a_nvml(1, broken="Driver Not Loaded"), "NVML: Driver Not Loaded"),
        (a_nvml(), "NVML shows no GPU"),
    ],
)
def test_a_library_that_shows_nothing_says_why(nvml: SimpleNamespace, says: str) -> None:
    watch = GpuSampler(nvml)

    assert watch.reason == says
    assert watch.sample() == ()


def test_without_a_gpu_nothing_is_loaded_and_it_is_unavailable() -> None:
    watch = gpu_sampler(gpus=0, load=lambda name: pytest.fail(f"loaded {name}"))

    assert watch.reason == "this host shows no NVIDIA GPU"
    assert watch.sample() == ()


def test_a_gpu_without_the_package_names_what_to_install() -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    assert "corebound[gpu]" in str(gpu_sampler(gpus=1, load=missing).reason)


def test_nvidia_s_package_has_all_that_is_called_of_it() -> None:
    nvml = pytest.importorskip("pynvml", reason="needs the extra `gpu`: nvidia-ml-py")

    for name in (
        *("NVMLError", "nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"),
        *("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo"),
    ):
        assert callable(getattr(nvml, name))


@needs.a_gpu
def test_a_real_gpu_tells_its_use() -> None:
    pytest.importorskip("pynvml", reason="needs the extra `gpu`: nvidia-ml-py")
    watch = gpu_sampler(gpus=1, load=importlib.import_module)

    assert watch.reason is None
    assert all(one.memory_bytes for one in watch.sample())
