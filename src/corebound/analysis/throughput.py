"""The throughput of a cell, and its share of the computed peak of the cell's cores."""

import math
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.wording import ValueWithBounds, count, within
from corebound.machine.identity import Host
from corebound.machine.peak_flops import Peak
from corebound.scenario.builtin_workloads import BUILT_IN
from corebound.scenario.models import Scenario
from corebound.stats.server_summary import TypicalValue, answered_per_s
from corebound.units import percent, significant

# Counted in billions; all other work is counted in units.
_FLOP = "flop"

_BITS = {"float32": 32, "float64": 64}


class PeakShare(Struct, frozen=True, kw_only=True):
    """A throughput compared with the computed peak of the cores of the cell's placement.

    Attributes:
        ratio: Throughput over peak. Above 1, an assumption of the peak is wrong.
        cores: The cores of the placement; bits: the size of the numbers.
    """

    ratio: float
    cores: int
    bits: int


def throughput(cell: CellResult) -> ValueWithBounds:
    """The work of all its workers over its median iteration, such as `512 images/s`.

    Empty if nothing was measured, or if the workload does not count its work. The interval is that
    of the median, or of the requests answered, in the unit of the value.
    """
    rates = _rates(cell)
    return ValueWithBounds(
        value=", ".join(_rate_text(rate.value, unit) for unit, rate in rates.items()),
        ends=", ".join(
            within(*rate.interval.ends, partial(_rate_text, unit=unit), beside=rate.value)
            for unit, rate in rates.items()
            if rate.interval is not None
        ),
    )


def peak_share_text(cell: CellResult, scenario: Scenario, host: Host) -> str:
    """`50 % of 2 cores' 32-bit peak`; empty if the share is unknown."""
    share = peak_share(cell, scenario, host)
    if share is None:
        return ""
    cores = "1 core's" if share.cores == 1 else f"{share.cores:,} cores'"
    return f"{percent(share.ratio, 0)} of {cores} {share.bits}-bit peak"


def is_peak_plausible(result: ScenarioResult) -> bool:
    """Whether no cell exceeds the computed peak.

    If one does, the peak assumes a wrong clock and no share of it is meaningful. A fairness check
    reports this once.
    """
    shares = (peak_share(cell, result.scenario, result.run.host) for cell in result.cells)
    return all(share is None or share.ratio <= 1 for share in shares)


def _rate_text(rate: float, unit: str) -> str:
    if math.isinf(rate):
        return "∞"
    number = significant(rate / 1e9 if unit == _FLOP else rate)
    return f"{number} {'GFLOP/s' if unit == _FLOP else f'{unit}/s'}"


def _rates(cell: CellResult) -> dict[str, TypicalValue]:
    """Work per second, by unit."""
    if (per_s := answered_per_s(cell.launches)) is not None:
        return {"requests": per_s}
    median_ns, interval = cell.summary.median_ns, cell.summary.interval
    work = next((launch.workers[0].work for launch in cell.launches if launch.status == "ok"), {})
    if median_ns is None:
        return {}
    rates = {unit: each * cell.cell.workers / median_ns * 1e9 for unit, each in work.items()}
    if interval is None or interval.low <= 0:
        return {unit: TypicalValue(value=rate, interval=None) for unit, rate in rates.items()}
    least, most = median_ns / interval.high, median_ns / interval.low
    return {
        unit: TypicalValue(
            value=rate, interval=replace(interval, low=rate * least, high=rate * most)
        )
        for unit, rate in rates.items()
    }


def peak_share(cell: CellResult, scenario: Scenario, host: Host) -> PeakShare | None:
    """The share of the placement's peak that a cell reached.

    None if the cell counts no floating-point operations, if a GPU makes them, or if the number type
    or the peak is unknown.
    """
    rate = _rates(cell).get(_FLOP)
    bits, placement, peak = _number_bits(cell, scenario), cell.placement, host.peak
    if rate is None or bits is None or placement is None or peak is None or cell.cell.gpus:
        return None
    core = {cpu.id: cpu.core for cpu in host.topology.cpus}
    cores = len({core[cpu] for slot in placement.slots for cpu in slot.cpus if cpu in core})
    peak_per_s = peak.flop_per_s(cores=cores, bits=bits)
    if not peak_per_s:
        return None
    return PeakShare(ratio=rate.value / peak_per_s, cores=cores, bits=bits)


def factors(peak: Peak, *, cores: int, bits: int) -> str:
    """The factors of a known peak; an FMA counts as two operations.

    >>> peak = Peak(core="Zen 5", simd="AVX-512", simd_bits=512, fma_units=2,
    ...             clock_hz=2_500_000_000, assumptions=())
    >>> factors(peak, cores=2, bits=32)
    '2 cores × 2 FMA × 16 lanes × 2 FLOP × 2.50 GHz'
    """
    lanes = (peak.simd_bits or 0) // bits
    clock = significant((peak.clock_hz or 0) / 1e9)
    return (
        f"{count(cores, 'core')} × {peak.fma_units} FMA × {count(lanes, 'lane')}"
        f" × 2 FLOP × {clock} GHz"
    )


def _number_bits(cell: CellResult, scenario: Scenario) -> int | None:
    """The size of the numbers a cell computes with; built-in workloads use float32 by default."""
    usual = "float32" if scenario.workload in BUILT_IN else ""
    return _BITS.get(str(dict(cell.cell.parameters).get("dtype", usual)))
