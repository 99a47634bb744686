"""How much GPUs are used, by NVIDIA's management library where it is there."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from corebound.model.telemetry import GpuUse

_PACKAGE = "pynvml"  # what `nvidia-ml-py` holds


class GpuWatch:
    """The GPUs of a host, look by look.

    Attributes:
        reason: Why nothing can be seen of them; None where it can.
    """

    def __init__(self, nvml: Any = None, *, reason: str | None = None) -> None:
        """Find the GPUs.

        Args:
            nvml: The package `pynvml`; None where there is none to ask, for a `reason`.
            reason: Why there is none.
        """
        self.reason = reason
        self._nvml = nvml
        self._handles: Sequence[Any] = ()
        if nvml is None:
            return
        try:
            nvml.nvmlInit()
            count = nvml.nvmlDeviceGetCount()
            self._handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
        except nvml.NVMLError as error:
            self.reason = f"NVML: {error}"
        if not self._handles and self.reason is None:
            self.reason = "NVML shows no GPU"

    def look(self) -> tuple[GpuUse, ...]:
        """The GPUs at this moment, in their order; none where there is a `reason`."""
        return tuple(self._use(str(index), one) for index, one in enumerate(self._handles))

    def _use(self, name: str, handle: Any) -> GpuUse:
        nvml = self._nvml
        busy = used = None
        # A part of a GPU (MIG) tells its memory, and not how busy it is.
        with contextlib.suppress(nvml.NVMLError):
            busy = nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
        with contextlib.suppress(nvml.NVMLError):
            used = nvml.nvmlDeviceGetMemoryInfo(handle).used
        return GpuUse(id=name, busy_share=busy, memory_bytes=used)


# A launch that computes on no GPU is not asked about them.
UNUSED = GpuWatch(reason="the launch computes on no GPU")


def opened(*, gpus: int, load: Callable[[str], Any] = importlib.import_module) -> GpuWatch:
    """What watches this host's GPUs; it loads NVIDIA's library only where there are some.

    Args:
        gpus: How many the host shows.
        load: Imports a package by its name.
    """
    if not gpus:
        return GpuWatch(reason="this host shows no NVIDIA GPU")
    try:
        return GpuWatch(load(_PACKAGE))
    except ImportError:
        return GpuWatch(reason="nvidia-ml-py is not installed (pip install corebound[gpu])")
