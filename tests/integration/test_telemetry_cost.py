"""Launches with looks and without, in turns: what looking costs is within noise of nothing."""

from __future__ import annotations

import statistics

from benchmarks import telemetry_cost

# What the issue promises of a step of 5 ms, on the quiet host where the benchmark is to run.
MOST = 0.005


def test_looking_is_cheap_and_a_step_with_looks_is_not_surely_slower() -> None:
    cost = telemetry_cost.measure(pairs=4)

    # CPU time of the looks: other programs hardly change it, so it is held to the target.
    assert statistics.median(cost.look_shares) < MOST
    # An A/A of wall times: they may be wide apart here, but not surely beyond the target.
    assert cost.interval is not None
    assert cost.interval.low < 1 + MOST
