"""How busy the GPUs of a launch were over time."""

import statistics
from collections.abc import Sequence

from msgspec import Struct

from corebound.analysis.launch_facts import LaunchFact
from corebound.records.launch_record import Launch
from corebound.records.telemetry import GPU_PERIODS_MS
from corebound.report.charts.axis import Tick
from corebound.report.charts.cpu_time import CpuStay, CpuTime, Track, cpu_time_svg
from corebound.report.charts.requests import REQUEST_INK
from corebound.units import percent

_GPU_PX = 28


class GpuOverTime(Struct, frozen=True, kw_only=True):
    """The GPUs that a launch used: the busiest ones, as many as its cell has.

    Attributes:
        readings: (from, to, busy share) of each, by the GPU's id; times in milliseconds.
    """

    readings: dict[str, tuple[tuple[int, int, float], ...]]

    @property
    def facts(self) -> tuple[LaunchFact, ...]:
        """The busy share of each, with its lowest and highest reading."""
        facts = []
        for name, readings in self.readings.items():
            shares = [share for _, _, share in readings]
            low, high = percent(min(shares), 0), percent(max(shares), 0)
            says = f"of the time GPU {name} is busy ({low} to {high})"
            facts.append(LaunchFact(percent(_busy(readings), 0), says))
        return tuple(facts)

    def above(self, name: str, until: float, end_ms: int) -> tuple[str, int, tuple[Tick, ...]]:
        """The drawing of a launch that ends at a share of its width; its height; its labels."""
        tracks = tuple(
            Track(
                ink=REQUEST_INK,
                name=f"GPU {gpu}",
                stays=(CpuStay(cpu=row, begin=begin / end_ms, end=min(1.0, end / end_ms)),),
                share=share,
            )
            for row, (gpu, readings) in enumerate(self.readings.items())
            for begin, end, share in readings
            if begin < end_ms
        )
        facts = "".join(f", {fact.value} {fact.says}" for fact in self.facts)
        first_ms = min(readings[0][0] for readings in self.readings.values())
        number = len(self.readings)
        drawn = CpuTime(
            cpus=number,
            tracks=tracks,
            since=until * min(1.0, first_ms / end_ms),
            until=until,
            alt_text=f"GPU use by time, {name}{facts}",
        )
        labels = tuple(
            Tick(at=round((row + 0.5) / number * 100, 2), text=f"GPU {gpu}")
            for row, gpu in enumerate(self.readings)
        )
        return cpu_time_svg(drawn), number * _GPU_PX, labels


def gpu_over_time(launch: Launch) -> GpuOverTime | None:
    """How busy GPUs were at each reading that covers only the launch; None without any."""
    if launch.host is None or launch.alternated:
        return None
    by_gpu: dict[str, list[tuple[int, int, float]]] = {}
    for window in launch.host.windows:
        for gpu in window.gpus if window.to_ms >= GPU_PERIODS_MS else ():
            if gpu.busy_share is not None and window.to_ms > window.from_ms:
                reading = (window.from_ms, window.to_ms, gpu.busy_share)
                by_gpu.setdefault(gpu.id, []).append(reading)
    busiest = sorted(by_gpu, key=lambda gpu: -_busy(by_gpu[gpu]))[: max(1, launch.cell.gpus)]
    readings = {gpu: tuple(by_gpu[gpu]) for gpu in sorted(busiest)}
    return GpuOverTime(readings=readings) if readings else None


def _busy(readings: Sequence[tuple[int, int, float]]) -> float:
    return statistics.fmean(
        (share for _, _, share in readings), [end - begin for begin, end, _ in readings]
    )
