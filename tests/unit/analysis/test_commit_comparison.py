"""Specifies verdicts on a suite at two commits, corrected for many comparisons."""

from corebound.analysis.commit_comparison import CellAtCommits
from corebound.analysis.compared import judge_together
from corebound.stats.comparison import Comparison, Verdict
from corebound.stats.intervals import Interval


def a_pair(
    *,
    p_value: float | None = 0.0001,
    speedup_ratio: float = 0.8,
    verdict: Verdict = "slower",
    margin: float = 0.02,
) -> CellAtCommits:
    return CellAtCommits(
        scenario="a-scenario",
        cell="default",
        before=1e6,
        after=1e6 / speedup_ratio,
        comparison=Comparison(
            speedup_ratio=speedup_ratio,
            interval=Interval(low=speedup_ratio * 0.99, high=speedup_ratio * 1.01, confidence=0.95),
            verdict=verdict,
            pairs=6,
            per_block=(),
            p_value=p_value,
            launches_needed=None,
        ),
        margin=margin,
        missing=(),
    )


def test_a_clear_slow_down_is_a_regression() -> None:
    (judged,) = judge_together([a_pair()])

    assert (judged.verdict, judged.is_regression) == ("slower", True)


def test_one_of_twenty_that_is_slower_by_chance_is_inconclusive() -> None:
    many = [a_pair(p_value=0.5, speedup_ratio=1.0, verdict="equivalent") for _ in range(19)]

    *_, judged = judge_together([*many, a_pair(p_value=0.04, speedup_ratio=0.97)])

    assert (judged.verdict, judged.is_regression) == ("inconclusive", False)


def test_a_certain_slow_down_within_the_margin_is_no_regression() -> None:
    (judged,) = judge_together([a_pair(speedup_ratio=0.99, margin=0.02)])

    assert (judged.verdict, judged.is_regression) == ("slower", False)


def test_an_improvement_is_no_regression() -> None:
    (judged,) = judge_together([a_pair(speedup_ratio=1.3, verdict="faster")])

    assert (judged.verdict, judged.is_regression) == ("faster", False)


def test_a_pair_without_values_has_no_verdict() -> None:
    pair = CellAtCommits(
        scenario="a-scenario", cell="default", before=None, after=1.0, comparison=None,
        margin=0.02, missing=("1a2b3c4d: skipped",),
    )  # fmt: skip

    assert [one.verdict for one in judge_together([pair, a_pair()])] == [None, "slower"]
