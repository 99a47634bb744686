"""What a core could compute at most, read off saved machines and invented ones."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.machine.peak_flops import peak
from support.machine_trees import machine_files, saved_machines, write_files

INTEL = "vendor_id: GenuineIntel\ncpu family: 6\n"
AVX512 = "flags: fpu avx2 fma avx512f\n"
AVX2 = "flags: fpu avx2 fma\n"


def a_root(
    folder: Path, cpuinfo: str, *, cpus: int = 2, khz: tuple[int, ...] = (), sve: str = ""
) -> Path:
    """A machine whose CPUs all say the same of themselves."""
    files = {"proc/cpuinfo": "\n".join(f"processor: {cpu}\n{cpuinfo}" for cpu in range(cpus))}
    for cpu, each in enumerate(khz):
        files[f"sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"] = f"{each}\n"
    if sve:
        files["proc/sys/abi/sve_default_vector_length"] = sve
    return write_files({path: text.encode() for path, text in files.items()}, folder)


@pytest.mark.parametrize(
    ("cpuinfo", "core", "flop_per_cycle"),
    [
        # 2 units × 16 lanes × 2.
        (INTEL + "model: 106\n" + AVX512, "Ice Lake server", 64),
        (INTEL + "model: 143\n" + AVX512, "Sapphire Rapids", 64),
        # A client has one unit of 512 bits, made of both of 256.
        (INTEL + "model: 140\n" + AVX512, "Tiger Lake", 32),
        (INTEL + "model: 63\n" + AVX2, "Haswell", 32),
        # Where AVX-512 is switched off, what is left counts.
        (INTEL + "model: 143\n" + AVX2, "Sapphire Rapids", 32),
        (INTEL + "model: 85\nmodel name: Intel(R) Xeon(R) Gold 6148 CPU\n" + AVX512, None, 64),
        (INTEL + "model: 85\nmodel name: Intel(R) Xeon(R) Gold 5122 CPU\n" + AVX512, None, 64),
        (INTEL + "model: 85\nmodel name: Intel(R) Xeon(R) Silver 4114 CPU\n" + AVX512, None, 32),
        ("vendor_id: AuthenticAMD\ncpu family: 23\nmodel: 1\n" + AVX2, "Zen", 16),
        ("vendor_id: AuthenticAMD\ncpu family: 23\nmodel: 49\n" + AVX2, "Zen 2", 32),
        ("vendor_id: AuthenticAMD\ncpu family: 25\nmodel: 1\n" + AVX2, "Zen 3", 32),
        ("vendor_id: AuthenticAMD\ncpu family: 25\nmodel: 17\n" + AVX512, "Zen 4", 32),
        ("vendor_id: AuthenticAMD\ncpu family: 26\nmodel: 2\n" + AVX512, "Zen 5", 64),
        ("CPU implementer: 0x41\nCPU part: 0xd0c\nFeatures: fp asimd\n", "Neoverse N1", 16),
    ],
)
def test_a_known_processor_design_has_its_documented_units(
    tmp_path: Path, cpuinfo: str, core: str | None, flop_per_cycle: int
) -> None:
    found = peak(a_root(tmp_path, cpuinfo, khz=(1_000_000,)))

    assert found.core == (core or "Skylake server")
    # At 1 GHz, in GFLOP/s; of float64 half as many fit.
    assert found.flop_per_s(cores=1, bits=32) == flop_per_cycle * 1e9
    assert found.flop_per_s(cores=3, bits=64) == flop_per_cycle / 2 * 3e9


@pytest.mark.parametrize(("sve", "bits", "units"), [("32\n", 256, 2), ("", None, None)])
def test_the_width_of_sve_comes_from_the_kernel(
    tmp_path: Path, sve: str, bits: int | None, units: int | None
) -> None:
    cpuinfo = "CPU implementer: 0x41\nCPU part: 0xd40\nFeatures: fp asimd sve\n"

    found = peak(a_root(tmp_path, cpuinfo, sve=sve))

    assert (found.simd, found.simd_bits, found.fma_units) == ("SVE", bits, units)


@pytest.mark.parametrize(
    "cpuinfo",
    [
        # Which Skylake server it is only its name tells, and a cloud's may not.
        INTEL + "model: 85\nmodel name: Intel(R) Xeon(R) CPU @ 2.00GHz\n" + AVX512,
        # Alder Lake has two kinds of core.
        INTEL + "model: 151\n" + AVX2,
        "vendor_id: AuthenticAMD\ncpu family: 26\nmodel: 36\n" + AVX512,
        INTEL + "model: x\n" + AVX2,
        # Ivy Bridge has no fused multiply-add.
        INTEL + "model: 58\nflags: fpu avx\n",
        "",
    ],
)
def test_an_unknown_design_has_no_peak(tmp_path: Path, cpuinfo: str) -> None:
    found = peak(a_root(tmp_path, cpuinfo, khz=(2_000_000,)))

    assert found.fma_units is None
    assert found.flop_per_s(cores=2, bits=32) is None
    assert not any("FMA" in one for one in found.assumptions)


def test_cores_of_two_designs_have_no_peak(tmp_path: Path) -> None:
    text = "".join(
        f"processor: {cpu}\nCPU implementer: 0x41\nCPU part: {part}\nFeatures: asimd\n\n"
        for cpu, part in enumerate(("0xd0c", "0xd49"))
    )
    root = write_files({"proc/cpuinfo": text.encode()}, tmp_path)

    assert peak(root).core is None


ZEN4 = "vendor_id: AuthenticAMD\ncpu family: 25\nmodel: 17\n" + AVX512


@pytest.mark.parametrize(
    ("more", "khz", "clock_hz", "assumption"),
    [
        (
            "model name: X @ 2.50GHz\ncpu MHz: 1800\n",
            (3_400_000, 3_400_000),
            3_400_000_000,
            "the clock is cpufreq's highest (all cores at once may not reach it)",
        ),
        (
            "",
            (3_400_000, 3_500_000),
            3_500_000_000,
            (
                "the clock is cpufreq's highest, of the fastest core"
                " (all cores at once may not reach it)"
            ),
        ),
        (
            "model name: X @ 2.50GHz\ncpu MHz: 1800\n",
            (),
            2_500_000_000,
            "the clock is the nominal one of the processor's name (turbo goes above it)",
        ),
        (
            "model name: X\ncpu MHz: 2596.120\n",
            (),
            2_596_120_000,
            "the clock is what /proc/cpuinfo showed (turbo may go above it)",
        ),
    ],
)
def test_the_clock_comes_from_cpufreq_the_model_name_or_cpuinfo(
    tmp_path: Path, more: str, khz: tuple[int, ...], clock_hz: int, assumption: str
) -> None:
    found = peak(a_root(tmp_path, ZEN4 + more, khz=khz))

    assert found.clock_hz == clock_hz
    assert assumption in found.assumptions


def test_a_hypervisor_makes_the_cores_an_assumption(tmp_path: Path) -> None:
    found = peak(a_root(tmp_path, ZEN4.replace("fpu", "fpu hypervisor")))

    assert any("hypervisor" in one for one in found.assumptions)


@pytest.mark.parametrize("machine", saved_machines())
def test_every_saved_machine_has_a_peak_or_none(machine: str, tmp_path: Path) -> None:
    found = peak(write_files(machine_files(machine), tmp_path))

    known = None not in (found.simd_bits, found.fma_units, found.clock_hz)
    assert (found.flop_per_s(cores=1, bits=64) is not None) == known


@given(text=st.text())
def test_any_cpuinfo_is_read(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = write_files({"proc/cpuinfo": text.encode()}, tmp_path_factory.mktemp("root"))

    assert peak(root).flop_per_s(cores=1, bits=32) is None
