"""Estimates a core's peak floating-point throughput from what the kernel reports."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from corebound.bounded_numbers import Count
from corebound.machine import procfs
from corebound.machine.sysfs import Files, Tree, numbered_entries, read_integer


class Core(Struct, frozen=True, kw_only=True):
    """A core design, with its fused multiply-adds per cycle for each width in bits.

    The name identifies the design.
    """

    name: str
    units: tuple[tuple[int, int], ...]

    @property
    def fma_units(self) -> Mapping[int, int]:
        """Fused multiply-adds per cycle, by width in bits."""
        return MappingProxyType(dict(self.units))


_TWO_256_BIT_UNITS = ((256, 2),)  # AVX2 alone
_ONE_512_BIT_UNIT = ((512, 1), (256, 2))  # both 256-bit units together form one 512-bit unit
_TWO_512_BIT_UNITS = ((512, 2), (256, 2))

# Intel, family 6. Model numbers: Linux, arch/x86/include/asm/intel-family.h. Units: Intel 64
# and IA-32 Architectures Optimization Reference Manual, ports 0, 1 and 5 of each design, and
# for servers "# of AVX-512 FMA Units" of ark.intel.com. Hybrid processors are left out: their
# two kinds of core differ.
_INTEL: tuple[tuple[frozenset[int], Core], ...] = (
    (frozenset({60, 63, 69, 70}), Core(name="Haswell", units=_TWO_256_BIT_UNITS)),
    (frozenset({61, 71, 79, 86}), Core(name="Broadwell", units=_TWO_256_BIT_UNITS)),
    (frozenset({78, 94, 142, 158, 165, 166}), Core(name="Skylake", units=_TWO_256_BIT_UNITS)),
    (frozenset({125, 126}), Core(name="Ice Lake", units=_ONE_512_BIT_UNIT)),
    (frozenset({140, 141}), Core(name="Tiger Lake", units=_ONE_512_BIT_UNIT)),
    (frozenset({167}), Core(name="Rocket Lake", units=_ONE_512_BIT_UNIT)),
    (frozenset({106, 108}), Core(name="Ice Lake server", units=_TWO_512_BIT_UNITS)),
    (frozenset({143}), Core(name="Sapphire Rapids", units=_TWO_512_BIT_UNITS)),
    (frozenset({207}), Core(name="Emerald Rapids", units=_TWO_512_BIT_UNITS)),
    (frozenset({173, 174}), Core(name="Granite Rapids", units=_TWO_512_BIT_UNITS)),
)

# Model 85 is Skylake, Cascade Lake and Cooper Lake servers. Only the name shows whether they
# have the second 512-bit unit (ark.intel.com); for other names it is unknown.
_SKYLAKE_SERVER = 85
_BY_NAME = (
    (re.compile(r"Platinum|Gold 6[0-9]{3}|Gold 5[12]22"), _TWO_512_BIT_UNITS),
    (re.compile(r"Gold 5[0-9]{3}|Silver|Bronze"), _ONE_512_BIT_UNIT),
    (re.compile(""), _TWO_256_BIT_UNITS),
)

# AMD, by family. Model numbers: Linux, arch/x86/kernel/cpu/amd.c. Units: AMD's Software
# Optimization Guides 55723 (Zen), 56305 (Zen 2), 56665 (Zen 3), 57647 (Zen 4: 512 bits are
# executed in two halves) and 58455 (Zen 5: full width in servers and desktops; its mobile
# models are left out).
_AMD: tuple[tuple[int, tuple[range, ...], Core], ...] = (
    (0x17, (range(0x30), range(0x50, 0x60)), Core(name="Zen", units=((256, 1),))),
    (
        0x17,
        (range(0x30, 0x50), range(0x60, 0x80), range(0x90, 0x92), range(0xA0, 0xB0)),
        Core(name="Zen 2", units=_TWO_256_BIT_UNITS),
    ),
    (0x19, (range(0x10), range(0x20, 0x60)), Core(name="Zen 3", units=_TWO_256_BIT_UNITS)),
    (0x19, (range(0x10, 0x20), range(0x60, 0xB0)), Core(name="Zen 4", units=_ONE_512_BIT_UNIT)),
    (0x1A, (range(0x20), range(0x40, 0x50)), Core(name="Zen 5", units=_TWO_512_BIT_UNITS)),
)

# Implementer and part: cputype.h of Linux (arch/arm64). Units: the Arm Software Optimization
# Guide of each core, throughput of FMLA (ASIMD, SVE); A64FX Microarchitecture Manual.
_ARM: dict[tuple[str, str], Core] = {
    ("0x41", "0xd0b"): Core(name="Cortex-A76", units=((128, 2),)),
    ("0x41", "0xd0c"): Core(name="Neoverse N1", units=((128, 2),)),
    ("0x41", "0xd40"): Core(name="Neoverse V1", units=((256, 2), (128, 4))),
    ("0x41", "0xd49"): Core(name="Neoverse N2", units=((128, 2),)),
    ("0x41", "0xd4f"): Core(name="Neoverse V2", units=((128, 4),)),
    ("0x46", "0x001"): Core(name="A64FX", units=((512, 2), (128, 2))),
}


_MODEL_NUMBER = re.compile(r"[0-9]{1,4}")


def core_design(block: Mapping[str, str]) -> Core | None:
    """The core design of a CPU's block in /proc/cpuinfo; None if it is not in the tables."""
    if "CPU part" in block:
        return _ARM.get((block.get("CPU implementer", ""), block["CPU part"]))
    family, model = block.get("cpu family", ""), block.get("model", "")
    if not (_MODEL_NUMBER.fullmatch(family) and _MODEL_NUMBER.fullmatch(model)):
        return None
    vendor = block.get("vendor_id")
    if vendor == "AuthenticAMD":
        return _amd(int(family), int(model))
    if vendor == "GenuineIntel" and int(family) == 6:
        return _intel(int(model), block.get("model name", ""))
    return None


def _amd(family: int, model: int) -> Core | None:
    matching = (
        core
        for of_family, models, core in _AMD
        if of_family == family and any(model in numbers for numbers in models)
    )
    return next(matching, None)


def _intel(model: int, name: str) -> Core | None:
    if model == _SKYLAKE_SERVER:
        units = next(units for pattern, units in _BY_NAME if pattern.search(name))
        return Core(name="Skylake server", units=units)
    return next((core for models, core in _INTEL if model in models), None)


class Peak(Struct, frozen=True, kw_only=True):
    """The factors of a core's peak floating-point throughput; None if unknown.

    Attributes:
        core: Name of the core's design, such as `Zen 4`.
        simd: The widest instructions it has, such as `AVX-512`.
        simd_bits: Their width in bits.
        fma_units: Fused multiply-adds of that width that a core starts per cycle.
        assumptions: Statements that were assumed rather than read from the host.
    """

    core: str | None
    simd: str | None
    simd_bits: Count | None
    fma_units: Count | None
    clock_hz: Count | None
    assumptions: tuple[str, ...]

    def flop_per_s(self, *, cores: int, bits: int) -> float | None:
        """Peak throughput of `cores` cores for numbers of `bits` bits; None if a factor is unknown.

        Cores × units × lanes × 2 × clock: a fused multiply-add is two operations.
        """
        if self.simd_bits is None or self.fma_units is None or self.clock_hz is None:
            return None
        return float(cores * self.fma_units * (self.simd_bits // bits) * 2 * self.clock_hz)


def peak(root: Path) -> Peak:
    """Read the factors of the peak floating-point throughput of a machine's cores.

    Args:
        root: The directory that contains `proc/` and `sys/`: `/`, or a saved machine.
    """
    tree = Files(root)
    blocks = _blocks(tree.read("proc/cpuinfo") or "")
    core = _core(blocks)
    sve_bytes = tree.read("proc/sys/abi/sve_default_vector_length") or ""
    simd = _simd(blocks[0] if blocks else {}, sve_bytes)
    clock = _clock(blocks, _frequencies_khz(tree))
    units = core.fma_units.get(simd.bits) if core and simd.bits else None
    return Peak(
        core=core.name if core else None,
        simd=simd.name,
        simd_bits=simd.bits,
        fma_units=units,
        clock_hz=clock.hz,
        assumptions=tuple(
            filter(
                None,
                (
                    f"a core of {core.name} has {units} FMA units of {simd.bits} bits"
                    " (so its maker documents it)"
                    if core and units
                    else "",
                    clock.assumption,
                    _HIDDEN if blocks and "hypervisor" in _flags(blocks[0]) else "",
                ),
            )
        ),
    )


_HIDDEN = "the processor and its cores are what the hypervisor shows (two may share one core)"

_CPUS = "sys/devices/system/cpu"
_NUMBER = re.compile(r"[0-9]{1,12}")

Block = dict[str, str]


class _Simd(Struct, frozen=True, kw_only=True):
    """The widest instructions with a fused multiply-add, and their width; None if unknown."""

    name: str | None
    bits: int | None


class _Clock(Struct, frozen=True, kw_only=True):
    hz: int | None
    assumption: str


def _blocks(cpuinfo: str) -> tuple[Block, ...]:
    """The fields of each CPU in /proc/cpuinfo."""
    blocks = procfs.cpuinfo(cpuinfo)
    return tuple(block for block in blocks if _NUMBER.fullmatch(block.get("processor", "")))


def _flags(block: Block) -> frozenset[str]:
    return frozenset((block.get("flags") or block.get("Features") or "").split())


def _core(blocks: Sequence[Block]) -> Core | None:
    """The design of all CPUs; None if they differ or it is not in the tables."""
    designs = {core_design(block) for block in blocks}
    return designs.pop() if len(designs) == 1 else None


def _simd(block: Block, sve_bytes: str) -> _Simd:
    flags = _flags(block)
    if "avx512f" in flags:
        return _Simd(name="AVX-512", bits=512)
    if {"avx2", "fma"} <= flags:
        return _Simd(name="AVX2", bits=256)
    if "sve" in flags:
        length = sve_bytes.strip()
        return _Simd(name="SVE", bits=8 * int(length) if _NUMBER.fullmatch(length) else None)
    if "asimd" in flags:
        return _Simd(name="NEON", bits=128)
    return _Simd(name=None, bits=None)


def _frequencies_khz(tree: Tree) -> frozenset[int]:
    """The maximum frequencies of the CPUs from cpufreq; empty without cpufreq."""
    folders = [
        *(
            f"cpufreq/policy{number}"
            for number in numbered_entries(tree, f"{_CPUS}/cpufreq", "policy")
        ),
        *(f"cpu{number}/cpufreq" for number in numbered_entries(tree, _CPUS, "cpu")),
    ]
    values = (read_integer(tree, f"{_CPUS}/{folder}/cpuinfo_max_freq") for folder in folders)
    return frozenset(value for value in values if value is not None and value > 0)


_NOMINAL = re.compile(r"@ *([0-9]+(?:\.[0-9]+)?) *GHz")


def _clock(blocks: Sequence[Block], frequencies_khz: frozenset[int]) -> _Clock:
    if frequencies_khz:
        qualifier = ", of the fastest core" if len(frequencies_khz) > 1 else ""
        return _Clock(
            hz=max(frequencies_khz) * 1000,
            assumption=f"the clock is cpufreq's highest{qualifier}"
            " (all cores at once may not reach it)",
        )
    if blocks and (match := _NOMINAL.search(blocks[0].get("model name", ""))):
        return _Clock(
            hz=round(float(match[1]) * 1e9),
            assumption="the clock is the nominal one of the processor's name (turbo goes above it)",
        )
    frequencies_mhz = [
        float(mhz)
        for block in blocks
        if re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,6})?", mhz := block.get("cpu MHz", ""))
    ]
    if not frequencies_mhz or max(frequencies_mhz) == 0:
        return _Clock(hz=None, assumption="")
    return _Clock(
        hz=round(max(frequencies_mhz) * 1e6),
        assumption="the clock is what /proc/cpuinfo showed (turbo may go above it)",
    )
