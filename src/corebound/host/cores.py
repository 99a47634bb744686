"""Designs of cores, and how many fused multiply-adds each begins in a cycle."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct


class Core(Struct, frozen=True, kw_only=True):
    """A design of a core, and for each width in bits its fused multiply-adds a cycle.

    Designs are told apart by name.
    """

    name: str
    units: tuple[tuple[int, int], ...]

    @property
    def fma_units(self) -> Mapping[int, int]:
        """By width in bits."""
        return MappingProxyType(dict(self.units))


_HALF = ((256, 2),)  # AVX2 alone
_ONE = ((512, 1), (256, 2))  # a 512-bit one is made of both of 256 bits
_FULL = ((512, 2), (256, 2))

# Intel, family 6. Model numbers: Linux, arch/x86/include/asm/intel-family.h. Units: Intel 64
# and IA-32 Architectures Optimization Reference Manual, ports 0, 1 and 5 of each design, and
# for servers "# of AVX-512 FMA Units" of ark.intel.com. Hybrid processors are left out: their
# two kinds of core differ.
_INTEL: tuple[tuple[frozenset[int], Core], ...] = (
    (frozenset({60, 63, 69, 70}), Core(name="Haswell", units=_HALF)),
    (frozenset({61, 71, 79, 86}), Core(name="Broadwell", units=_HALF)),
    (frozenset({78, 94, 142, 158, 165, 166}), Core(name="Skylake", units=_HALF)),
    (frozenset({125, 126}), Core(name="Ice Lake", units=_ONE)),
    (frozenset({140, 141}), Core(name="Tiger Lake", units=_ONE)),
    (frozenset({167}), Core(name="Rocket Lake", units=_ONE)),
    (frozenset({106, 108}), Core(name="Ice Lake server", units=_FULL)),
    (frozenset({143}), Core(name="Sapphire Rapids", units=_FULL)),
    (frozenset({207}), Core(name="Emerald Rapids", units=_FULL)),
    (frozenset({173, 174}), Core(name="Granite Rapids", units=_FULL)),
)

# Model 85 is Skylake, Cascade Lake and Cooper Lake servers. Whether the second unit of
# 512 bits is there is told by the name alone (ark.intel.com); a name that does not tell leaves it
# unknown.
_SKYLAKE_SERVER = 85
_BY_NAME = (
    (re.compile(r"Platinum|Gold 6[0-9]{3}|Gold 5[12]22"), _FULL),
    (re.compile(r"Gold 5[0-9]{3}|Silver|Bronze"), _ONE),
    (re.compile(""), _HALF),
)

# AMD, by family. Model numbers: Linux, arch/x86/kernel/cpu/amd.c. Units: AMD's Software
# Optimization Guides 55723 (Zen), 56305 (Zen 2), 56665 (Zen 3), 57647 (Zen 4: 512 bits pass in
# two halves) and 58455 (Zen 5, with the full width in servers and desktops; its mobile models
# are left out).
_AMD: tuple[tuple[int, tuple[range, ...], Core], ...] = (
    (0x17, (range(0x30), range(0x50, 0x60)), Core(name="Zen", units=((256, 1),))),
    (
        0x17,
        (range(0x30, 0x50), range(0x60, 0x80), range(0x90, 0x92), range(0xA0, 0xB0)),
        Core(name="Zen 2", units=_HALF),
    ),
    (0x19, (range(0x10), range(0x20, 0x60)), Core(name="Zen 3", units=_HALF)),
    (0x19, (range(0x10, 0x20), range(0x60, 0xB0)), Core(name="Zen 4", units=_ONE)),
    (0x1A, (range(0x20), range(0x40, 0x50)), Core(name="Zen 5", units=_FULL)),
)

# Implementer and part, as cputype.h of Linux (arch/arm64) has them. Units: Arm's Software
# Optimization Guides of each, throughput of FMLA (ASIMD, SVE); A64FX Microarchitecture Manual.
_ARM: dict[tuple[str, str], Core] = {
    ("0x41", "0xd0b"): Core(name="Cortex-A76", units=((128, 2),)),
    ("0x41", "0xd0c"): Core(name="Neoverse N1", units=((128, 2),)),
    ("0x41", "0xd40"): Core(name="Neoverse V1", units=((256, 2), (128, 4))),
    ("0x41", "0xd49"): Core(name="Neoverse N2", units=((128, 2),)),
    ("0x41", "0xd4f"): Core(name="Neoverse V2", units=((128, 4),)),
    ("0x46", "0x001"): Core(name="A64FX", units=((512, 2), (128, 2))),
}


_NUMBER = re.compile(r"[0-9]{1,4}")


def known(block: Mapping[str, str]) -> Core | None:
    """The design that a CPU's part of /proc/cpuinfo names; None if it is in no table."""
    if "CPU part" in block:
        return _ARM.get((block.get("CPU implementer", ""), block["CPU part"]))
    family, model = block.get("cpu family", ""), block.get("model", "")
    if not (_NUMBER.fullmatch(family) and _NUMBER.fullmatch(model)):
        return None
    vendor = block.get("vendor_id")
    if vendor == "AuthenticAMD":
        return _amd(int(family), int(model))
    if vendor == "GenuineIntel" and int(family) == 6:
        return _intel(int(model), block.get("model name", ""))
    return None


def _amd(family: int, model: int) -> Core | None:
    found = (
        core
        for of, models, core in _AMD
        if of == family and any(model in numbers for numbers in models)
    )
    return next(found, None)


def _intel(model: int, name: str) -> Core | None:
    if model == _SKYLAKE_SERVER:
        units = next(units for pattern, units in _BY_NAME if pattern.search(name))
        return Core(name="Skylake server", units=units)
    return next((core for models, core in _INTEL if model in models), None)
