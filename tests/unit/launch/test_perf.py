"""Specifies how the output of `perf stat` becomes counts and shares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.launch.perf import Count, counter_fields, parse, supported_counters, total_counts
from corebound.records.telemetry import Counters
from support.known import known
from support.paths import DATA
from support.texts import in_order

FOLDER = DATA / "perf"
RECORDED = FOLDER / "software-6.1.csv"

# Made up: 2e9 cycles and 3e9 instructions, loads, and 1000 slots of which 500 retire, 50
# are badly speculated, 50 lack instructions and 400 wait, 300 of these for memory.
HARDWARE = """\
# started on Sat Nov 21 14:28:32 2026

2000000000,,cycles:u,1000000000,100.00,,
3000000000,,instructions:u,1000000000,100.00,1.50,insn per cycle
1000000,,LLC-load-misses:u,800000000,80.00,,
250000,,node-load-misses:u,800000000,80.00,,
1000,,cpu_core/slots/u,1000000000,100.00,,
500,,cpu_core/topdown-retiring/u,1000000000,100.00,50.0,%  tma_retiring
50,,cpu_core/topdown-bad-spec/u,1000000000,100.00,,
50,,cpu_core/topdown-fe-bound/u,1000000000,100.00,,
400,,cpu_core/topdown-be-bound/u,1000000000,100.00,,
300,,cpu_core/topdown-mem-bound/u,1000000000,100.00,,
"""


def test_recorded_software_events_are_counted_and_hardware_events_have_a_reason() -> None:
    found = parse(RECORDED.read_text(encoding="utf-8"))

    value = known(found["task-clock"].value)
    assert 0 < value < 1100  # milliseconds of one thread in a second
    assert found["cpu-migrations"].value is not None
    assert found["cycles"] == Count(value=None, running_share=1.0, reason="not supported")


def test_counts_become_instructions_per_cycle_and_shares_of_slots() -> None:
    found = Counters(source="perf", **counter_fields(parse(HARDWARE)))

    assert found.instructions_per_cycle == 1.5
    assert (found.llc_misses, found.remote_loads) == (1_000_000, 250_000)
    assert found.slots == {
        "retiring": 0.5,
        "bad_speculation": 0.05,
        "frontend_bound": 0.05,
        "backend_bound": 0.4,
        "memory_bound": 0.3,
        "core_bound": 0.1,
    }
    assert found.running_share == 0.8
    assert found.unavailable == {}


@pytest.mark.parametrize(
    "text", ["", "\n", "# started on\n", "perf: command not found", ",,,,,", "a,b,c,d,e,f", "1,2"]
)
def test_lines_without_a_count_are_ignored(text: str) -> None:
    assert parse(text) == {}


def test_only_supported_events_are_requested() -> None:
    group = "{cpu/slots/,cpu/topdown-retiring/}"
    counts = parse(HARDWARE.replace("1000000,,LLC", "<not supported>,,LLC"))

    offer = supported_counters(["cycles", "LLC-load-misses", "node-load-misses", group], counts)

    assert offer.events == ("cycles", "node-load-misses", group)
    assert [*offer.unavailable] == ["LLC-load-misses"]


def test_a_host_without_counters_has_one_reason() -> None:
    offer = supported_counters(["cycles"], parse(RECORDED.read_text(encoding="utf-8")))

    assert offer.events == ()
    assert [*offer.unavailable] == ["hardware counters"]


def of_recorded(name: str) -> dict[str, Count]:
    return parse((FOLDER / f"{name}.csv").read_text(encoding="utf-8"))


def test_a_process_that_moved_between_kinds_of_cores_has_the_cycles_of_both() -> None:
    fields = counter_fields(of_recorded("hybrid-moved"))

    # perf scaled both up: 233,066,666 × 0.43 % were counted on one kind, 604,097,080 × 99.57 %
    # on the other.
    assert fields["cycles_by_pmu"] == {"cpu_core": 1_002_187, "cpu_atom": 601_499_463}
    assert fields["cycles"] == 602_501_649
    assert fields["running_share"] == pytest.approx(1.0)


def test_a_process_on_one_kind_of_cores_has_its_cycles_alone() -> None:
    found = of_recorded("hybrid-on-one-kind")
    counters = Counters(source="perf", **counter_fields(found))

    assert (counters.cycles, counters.instructions) == (959_722, 978_399)
    assert counters.cycles_by_pmu == {"cpu_core": 959_722}
    assert counters.running_share == 1.0
    assert counters.unavailable == {"stalled-cycles-frontend": "not supported"}


def hybrid(event: str, core: str, atom: str, *, modifier: str = "") -> dict[str, Count]:
    """An event's lines, each the value and the share of the time as perf writes them."""
    (core_value, core_share), (atom_value, atom_share) = (
        core.rsplit(maxsplit=1),
        atom.rsplit(maxsplit=1),
    )
    return parse(
        f"{atom_value},,cpu_atom/{event}/{modifier},5,{atom_share},,\n"
        f"{core_value},,cpu_core/{event}/{modifier},7,{core_share},,\n"
    )


def test_multiplexed_counts_of_core_types_are_scaled_to_the_whole_time() -> None:
    # 400 × 30 % and 200 × 20 %: 160 in half of the time.
    (count,) = hybrid("cycles", "400 30.00", "200 20.00", modifier="u").values()

    assert count.value == pytest.approx(320)
    assert count.running_share == pytest.approx(0.5)
    assert count.by_pmu == pytest.approx({"cpu_core": 120, "cpu_atom": 40})


def test_an_event_that_one_core_type_lacks_is_known_only_if_the_other_ran_nearly_always() -> None:
    lines = (
        "600,,cpu_core/LLC-load-misses/,7,{},,\n"
        "<not supported>,,cpu_atom/LLC-load-misses/,0,100.00,,\n"
    )

    assert parse(lines.format("99.60"))["LLC-load-misses"].value == pytest.approx(600)
    (half,) = parse(lines.format("60.00")).values()
    assert (half.value, in_order(half.reason, "not supported", "cpu_atom")) == (None, True)


@given(
    core=st.integers(0, 10**12),
    atom=st.integers(0, 10**12),
    percent_of_core=st.integers(1, 9_999).map(lambda share: share / 100),
)
def test_counts_on_two_kinds_lie_between_what_each_is_scaled_to(
    core: int, atom: int, percent_of_core: float
) -> None:
    (count,) = hybrid(
        "cycles", f"{core} {percent_of_core:.2f}", f"{atom} {100 - percent_of_core:.2f}"
    ).values()

    assert min(core, atom) * 0.999 <= known(count.value) <= max(core, atom) * 1.001
    assert sum(count.by_pmu.values()) == pytest.approx(known(count.value), rel=1e-3)


def test_processes_on_different_kinds_of_cores_add_up() -> None:
    both = total_counts(
        [
            hybrid("cycles", "100 100.00", "<not counted> 0.00"),
            hybrid("cycles", "<not counted> 0.00", "40 100.00"),
        ]
    )

    assert both["cycles"].value == 140
    assert both["cycles"].by_pmu == {"cpu_core": 100, "cpu_atom": 40}
