"""The head-to-head with other tools reads what they say, and treats them alike."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from support.paths import ROOT

sys.path.insert(0, str(ROOT))

from benchmarks.peers.__main__ import Answer, paced, table, trials  # no part of the package
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
def test_asvs_first_column_is_what_it_says(mark: str, said: str) -> None:
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
def test_pyperf_says_slower_faster_or_not_significant(words: str, said: str) -> None:
    assert pyperf_says(words) == said


def test_what_no_tool_says_is_an_error() -> None:
    with pytest.raises(ValueError, match="asv said"):
        asv_says("no table")
    with pytest.raises(ValueError, match="pyperf said"):
        pyperf_says("what?")


def test_hyperfine_tells_a_difference_where_1_is_beyond_its_plus_minus() -> None:
    # Means 1 and 1.1; standard deviations 0.1 and 0.02: the ratio is 1.1 +- 0.11.
    noisy, slower = [0.9, 1.0, 1.1], [1.08, 1.1, 1.12]

    assert hyperfine_says(noisy, slower) == "same"
    assert hyperfine_says([0.99, 1.0, 1.01], slower) == "slower"
    assert hyperfine_says(slower, [0.99, 1.0, 1.01]) == "faster"


def test_its_welch_script_asks_for_5_percent() -> None:
    assert welch_says([1.0, 1.01, 0.99], [1.1, 1.11, 1.09]) == "slower"
    assert welch_says([1.1, 1.11, 1.09], [1.0, 1.01, 0.99]) == "faster"
    assert welch_says([1.0, 1.1, 0.9], [1.0, 1.11, 0.91]) == "same"


@pytest.mark.parametrize(("finding", "said"), [(True, "slower"), (False, "same")])
def test_of_corebound_only_a_finding_counts(finding: bool, said: str) -> None:
    cells = [{"verdict": None, "finding": False}, {"verdict": "slower", "finding": finding}]

    assert corebound_says({"cells": cells}) == said


def test_every_share_has_as_many_trials_and_every_tool_is_in_each() -> None:
    order = trials([0.0, 0.03], 5, ("a", "b", "c"), seed=1)

    assert Counter(share for share, _ in order) == {0.0: 5, 0.03: 5}
    assert all(sorted(tools) == ["a", "b", "c"] for _, tools in order)
    # In turns: neither the shares nor the tools stand in the order they were named in.
    assert len({tools for _, tools in order}) > 1
    assert [share for share, _ in order] != sorted(share for share, _ in order)
    assert order == trials([0.0, 0.03], 5, ("a", "b", "c"), seed=1)


def test_who_took_too_long_is_given_less_the_next_time() -> None:
    given_s = 8.0
    for _ in range(20):
        # It takes three seconds more than it is given.
        given_s = paced(given_s, took_s=given_s + 3, wanted_s=8.0)

    assert given_s == pytest.approx(5.0, abs=0.01)


def test_the_second_side_has_the_planted_share_more_work_in_a_repository_of_two_commits(
    tmp_path: Path,
) -> None:
    made = pair(tmp_path / "pair", slower=0.05, seconds=1)

    assert (made.before, made.after) == (TURNS, round(1.05 * TURNS))
    assert len(set(repository(made.folder))) == 2


def test_the_table_counts_any_difference_of_equals_and_only_slower_of_the_others() -> None:
    said: list[tuple[float, Said]] = [(0.0, "faster"), (0.0, "same"), (0.03, "slower")]
    answers = [Answer(rule="tool", share=share, said=one, took_s=2) for share, one in said]
    answers.append(Answer(rule="tool", share=0.03, said="faster", took_s=4))

    head, row = table(answers)

    assert "alarms, A/A" in head
    assert "3% slower" in head
    assert row.split()[:2] == ["tool", "50.0%"]
    # One of two found, one called faster, 2.5 s in the mean.
    assert row.split()[-2:] == ["1", "2.5"]
