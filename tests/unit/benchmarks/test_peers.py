"""`benchmarks.peers` reads verdicts of other tools correctly and treats all tools alike."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from benchmarks.peers.__main__ import Answer, paced, table, trials
from benchmarks.peers.tools import (
    Said,
    asv_says,
    corebound_says,
    hyperfine_says,
    pyperf_says,
    welch_says,
)
from benchmarks.peers.workload import TURNS, pair, repository

ASV = """
All benchmarks:

| Change   | Before [905ec02f] <main~1>   | After [640eaffd] <main>   | Ratio   | Benchmark |
|----------|------------------------------|---------------------------|---------|-----------|
| {mark:<8} | 1.19±0.1ms                   | 1.41±0.1ms                | 1.18    | work      |
"""


@pytest.mark.parametrize(("mark", "said"), [("+", "slower"), ("-", "faster"), ("", "same")])
def test_the_first_column_of_asv_is_its_verdict(mark: str, said: str) -> None:
    assert asv_says(ASV.format(mark=mark)) == said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("Mean +- std dev: [before] 1.2 ms +- 0.1 ms -> [after] 1.3 ms +- 0.1 ms: 1.05x slower",
         "slower"),
        ("Mean +- std dev: [before] 1.2 ms +- 0.1 ms -> [after] 1.1 ms +- 0.1 ms: 1.05x faster",
         "faster"),
        ("Benchmark hidden because not significant (1): work", "same"),
    ],
)  # fmt: skip
def test_pyperfs_verdict_is_slower_faster_or_same(words: str, said: str) -> None:
    assert pyperf_says(words) == said


def test_output_without_a_verdict_is_an_error() -> None:
    with pytest.raises(ValueError, match="asv said"):
        asv_says("no table")
    with pytest.raises(ValueError, match="pyperf said"):
        pyperf_says("what?")


def test_hyperfine_differs_where_1_is_outside_its_interval() -> None:
    # Means 1 and 1.1; standard deviations 0.1 and 0.02: the ratio is 1.1 +- 0.11.
    noisy, slower = [0.9, 1.0, 1.1], [1.08, 1.1, 1.12]

    assert hyperfine_says(noisy, slower) == "same"
    assert hyperfine_says([0.99, 1.0, 1.01], slower) == "slower"
    assert hyperfine_says(slower, [0.99, 1.0, 1.01]) == "faster"


def test_hyperfines_welch_script_uses_a_level_of_5_percent() -> None:
    assert welch_says([1.0, 1.01, 0.99], [1.1, 1.11, 1.09]) == "slower"
    assert welch_says([1.1, 1.11, 1.09], [1.0, 1.01, 0.99]) == "faster"
    assert welch_says([1.0, 1.1, 0.9], [1.0, 1.11, 0.91]) == "same"


@pytest.mark.parametrize(("finding", "said"), [(True, "slower"), (False, "same")])
def test_only_a_finding_of_corebound_counts(finding: bool, said: str) -> None:
    cells = [{"verdict": None, "finding": False}, {"verdict": "slower", "finding": finding}]

    assert corebound_says({"cells": cells}) == said


def test_every_share_has_equal_trials_with_every_tool() -> None:
    order = trials([0.0, 0.03], 5, ("a", "b", "c"), seed=1)

    assert Counter(share for share, _ in order) == {0.0: 5, 0.03: 5}
    assert all(sorted(tools) == ["a", "b", "c"] for _, tools in order)
    # Both shares and tools are in random order.
    assert len({tools for _, tools in order}) > 1
    assert [share for share, _ in order] != sorted(share for share, _ in order)
    assert order == trials([0.0, 0.03], 5, ("a", "b", "c"), seed=1)


def test_a_tool_that_takes_too_long_gets_less_time() -> None:
    given_s = 8.0
    for _ in range(20):
        # It takes three seconds more than its budget.
        given_s = paced(given_s, took_s=given_s + 3, wanted_s=8.0)

    assert given_s == pytest.approx(5.0, abs=0.01)


def test_the_second_commit_has_the_planted_share_of_extra_work(
    tmp_path: Path,
) -> None:
    made = pair(tmp_path / "pair", slower=0.05, seconds=1)

    assert (made.before, made.after) == (TURNS, round(1.05 * TURNS))
    assert len(set(repository(made.folder))) == 2


def test_the_table_counts_false_alarms_and_detections() -> None:
    said: list[tuple[float, Said]] = [(0.0, "faster"), (0.0, "same"), (0.03, "slower")]
    answers = [Answer(rule="tool", share=share, said=one, took_s=2) for share, one in said]
    answers.append(Answer(rule="tool", share=0.03, said="faster", took_s=4))

    head, row = table(answers)

    assert "alarms, A/A" in head
    assert "3% slower" in head
    assert row.split()[:2] == ["tool", "50.0%"]
    # One of two detected, one called faster, 2.5 s on average.
    assert row.split()[-2:] == ["1", "2.5"]
