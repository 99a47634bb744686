"""`benchmarks.telemetry_cost` measures the cost of sampling with real workers."""

from benchmarks import telemetry_cost


def test_the_cost_of_sampling_is_measured_by_pairs_with_an_interval() -> None:
    cost = telemetry_cost.measure(pairs=2)

    # How little it is, is for the quiet host where the benchmark is to run.
    assert len(cost.ratios) == 2
    assert all(ratio > 0 for ratio in cost.ratios)
    assert all(0 < share < 1 for share in cost.look_shares)
    assert cost.interval is not None
    assert cost.interval.low <= cost.interval.high
