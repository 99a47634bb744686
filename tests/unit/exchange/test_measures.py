"""Units of other tools: which are the same measure, and how they convert."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.exchange.measures import measure_of

# Each group is one measure; the factors are definitions (SI brochure; IEC 80000-13).
SAME: tuple[tuple[str, dict[str, float]], ...] = (
    (
        "ns",
        {
            "ns": 1, "ns/iter": 1, "ns/op": 1, "us": 1e3, "µs": 1e3, "μs/op": 1e3, "usec": 1e3,
            "microseconds": 1e3, "ms": 1e6, "msec": 1e6, "milliseconds": 1e6, "ms per op": 1e6,
            "s": 1e9, "sec": 1e9, "seconds/iteration": 1e9, "min": 60e9,
            "median ms": 1e6, "ms (avg)": 1e6, "ms, median": 1e6,
        },
    ),
    (
        "bytes",
        {
            "B": 1, "bytes": 1, "Bytes": 1, "B/op": 1, "kB": 1e3, "KB": 1e3, "kb": 1e3, "MB": 1e6,
            "megabytes": 1e6, "GB": 1e9, "KiB": 1024, "kib": 1024, "MiB": 1 << 20, "GiB": 1 << 30,
            "kilobytes": 1e3,
        },
    ),
    ("bytes/s", {"B/s": 1, "MB/s": 1e6, "MiB/s": 1 << 20, "GB per second": 1e9, "MB/ms": 1e9}),
    ("op/s", {"ops/s": 1, "op/sec": 1, "operations / second": 1, "kops/s": 1e3, "ops/ms": 1e3}),
    ("iter/s", {"iter/sec": 1, "iterations/second": 1, "iter/min": 1 / 60}),
    ("req/s", {"req/s": 1, "requests per second": 1, "kreq/s": 1e3}),
    ("flop/s", {"flop/s": 1, "Gflop/s": 1e9}),
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "unit", "scale"),
    [(name, unit, scale) for name, units in SAME for unit, scale in units.items()],
)
def test_units_of_one_measure_convert(name: str, unit: str, scale: float) -> None:
    measure = measure_of(unit)

    assert measure.name == name
    assert measure.scale == pytest.approx(scale)


@pytest.mark.parametrize(
    "unit", ["points", "%", "Mb", "p99 ms", "allocs/op", "s/s", "value", "", "ns/byte", "n/s", "M"]
)
def test_any_other_unit_is_a_measure_of_its_own(unit: str) -> None:
    assert measure_of(unit) == (unit, 1.0, True)


@pytest.mark.parametrize("unit", ["median ms", "MB", "kB/s", "avg B"])
def test_a_conversion_that_is_not_certain_says_so(unit: str) -> None:
    assert not measure_of(unit).is_exact


@given(unit=st.text(st.sampled_from("kMGibBsnumopertcdian/ (),µ⁻¹"), max_size=300))
def test_any_text_is_a_measure(unit: str) -> None:
    assert measure_of(unit).scale > 0
