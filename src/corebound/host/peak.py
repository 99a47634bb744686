"""What a core could compute at most, from what the kernel shows of it.

Nothing is measured, and nothing is guessed: a factor that neither the kernel nor
the table of designs gives is None, and what holds only by assumption is said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from corebound.host.cores import Core, known
from corebound.model.run import Peak


def peak(root: Path) -> Peak:
    """Read what bounds the floating-point throughput of a machine's cores.

    Args:
        root: What holds `proc/` and `sys/`: `/`, or a saved machine.
    """
    every = _blocks(_text(root / "proc/cpuinfo"))
    core = _core(every)
    simd = _simd(every[0] if every else {}, _text(root / "proc/sys/abi/sve_default_vector_length"))
    clock = _clock(every, _frequencies_khz(root / "sys/devices/system/cpu"))
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
                    _HIDDEN if every and "hypervisor" in _flags(every[0]) else "",
                ),
            )
        ),
    )


_HIDDEN = "the processor and its cores are what the hypervisor shows (two may share one core)"

_NUMBER = re.compile(r"[0-9]{1,12}")

Block = dict[str, str]


class _Simd(Struct, frozen=True, kw_only=True):
    """The widest instructions with a fused multiply-add, and their width; None: none known."""

    name: str | None
    bits: int | None


class _Clock(Struct, frozen=True, kw_only=True):
    hz: int | None
    assumption: str


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _blocks(cpuinfo: str) -> tuple[Block, ...]:
    """What /proc/cpuinfo says of each CPU."""
    blocks = []
    for part in cpuinfo.split("\n\n"):
        lines = (line.partition(":") for line in part.splitlines())
        block = {name.strip(): value.strip() for name, _, value in lines}
        if _NUMBER.fullmatch(block.get("processor", "")):
            blocks.append(block)
    return tuple(blocks)


def _flags(block: Block) -> frozenset[str]:
    return frozenset((block.get("flags") or block.get("Features") or "").split())


def _core(every: Sequence[Block]) -> Core | None:
    """The design that all CPUs have; None where they differ or it is in no table."""
    found = {known(block) for block in every}
    return found.pop() if len(found) == 1 else None


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


def _frequencies_khz(folder: Path) -> frozenset[int]:
    """The highest frequency of each CPU, as cpufreq has it; without it, nothing."""
    files = [
        *folder.glob("cpufreq/policy*/cpuinfo_max_freq"),
        *folder.glob("cpu[0-9]*/cpufreq/cpuinfo_max_freq"),
    ]
    texts = (_text(file).strip() for file in files)
    return frozenset(int(text) for text in texts if _NUMBER.fullmatch(text) and int(text) > 0)


_NOMINAL = re.compile(r"@ *([0-9]+(?:\.[0-9]+)?) *GHz")


def _clock(every: Sequence[Block], frequencies_khz: frozenset[int]) -> _Clock:
    if frequencies_khz:
        unlike = ", of the fastest core" if len(frequencies_khz) > 1 else ""
        return _Clock(
            hz=max(frequencies_khz) * 1000,
            assumption=f"the clock is cpufreq's highest{unlike}"
            " (all cores at once may not reach it)",
        )
    if every and (named := _NOMINAL.search(every[0].get("model name", ""))):
        return _Clock(
            hz=round(float(named[1]) * 1e9),
            assumption="the clock is the nominal one of the processor's name (turbo goes above it)",
        )
    shown = [
        float(mhz)
        for block in every
        if re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,6})?", mhz := block.get("cpu MHz", ""))
    ]
    if not shown or max(shown) == 0:
        return _Clock(hz=None, assumption="")
    return _Clock(
        hz=round(max(shown) * 1e6),
        assumption="the clock is what /proc/cpuinfo showed (turbo may go above it)",
    )
