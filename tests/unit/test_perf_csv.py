"""What perf counted, as its lines tell; tests/data/perf says where recorded ones are from."""

from __future__ import annotations

from pathlib import Path

import pytest

from corebound.launch.perf import offered
from corebound.launch.perf_csv import Count, fields_of, parse
from corebound.model.telemetry import Counters

RECORDED = Path(__file__).parent.parent / "data" / "perf" / "software-6.1.csv"

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


def test_recorded_software_events_are_read_and_hardware_ones_say_why_not() -> None:
    found = parse(RECORDED.read_text(encoding="utf-8"))

    value = found["task-clock"].value
    assert value is not None
    assert 0 < value < 1100  # milliseconds of one thread in a second
    assert found["cpu-migrations"].value is not None
    assert found["cycles"] == Count(value=None, running_share=1.0, reason="not supported")


def test_counts_become_instructions_per_cycle_and_shares_of_slots() -> None:
    found = Counters(source="perf", **fields_of(parse(HARDWARE)))

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


def test_without_every_event_of_level_one_there_are_no_shares() -> None:
    lines = [line for line in HARDWARE.splitlines() if "fe-bound" not in line]

    assert fields_of(parse("\n".join(lines)))["slots"] == {}


def test_an_event_that_was_never_counted_is_absent_not_zero() -> None:
    fields = fields_of(parse("<not counted>,,LLC-load-misses,0,0.00,,\n7,,cycles,9,100.00,,\n"))

    assert "llc_misses" not in fields
    assert fields["unavailable"] == {"LLC-load-misses": "not counted"}
    assert Counters(source="perf", **fields).instructions_per_cycle is None


@pytest.mark.parametrize(
    "text", ["", "\n", "# started on\n", "perf: command not found", ",,,,,", "a,b,c,d,e,f", "1,2"]
)
def test_what_is_no_count_is_left_out(text: str) -> None:
    assert parse(text) == {}


def test_only_what_the_host_supports_is_asked_for() -> None:
    group = "{cpu/slots/,cpu/topdown-retiring/}"
    counts = parse(HARDWARE.replace("1000000,,LLC", "<not supported>,,LLC"))

    offer = offered(["cycles", "LLC-load-misses", "node-load-misses", group], counts)

    assert offer.events == ("cycles", "node-load-misses", group)
    assert offer.unavailable == {"LLC-load-misses": "not supported by this host"}


def test_a_host_without_any_counter_says_so_once() -> None:
    offer = offered(["cycles"], parse(RECORDED.read_text(encoding="utf-8")))

    assert offer.events == ()
    assert offer.unavailable == {"hardware counters": "not supported by this host"}
