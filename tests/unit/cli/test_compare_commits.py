"""The output of `corebound compare-commits`, in each of its formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from corebound.analysis.commit_comparison import CellAtCommits
from corebound.analysis.compared import judge_together
from corebound.cli.commands.compare_commits import Format, formatted
from corebound.records.run_record import Commit
from corebound.stats.comparison import Comparison
from corebound.stats.intervals import Interval
from corebound.workflow.compare_commits import CompareCommitsResult
from corebound.workflow.comparison_sides import Side, Sides, sides_of_commits
from support.markup import parse_xml

SUBJECT = "@team <b>\x1b[2J #7"


LOG = "cc: \x1b[31merror\x1b[0m\n\tin a.c"


def a_comparison() -> CompareCommitsResult:
    base, head = (
        Commit(sha=sign * 40, subject=SUBJECT, committed_at="2026-03-14T00:00:00Z", dirty=False)
        for sign in "ab"
    )
    cell = CellAtCommits(
        scenario="io", cell="n=1", before=1e6, after=None, comparison=None, margin=0.01,
        missing=(LOG,),
    )  # fmt: skip
    return CompareCommitsResult(
        sides=sides_of_commits("shop", base, head),
        verdicts=(cell,),
        noise=(),
        records=Path("records/a.jsonl"),
        ending="complete",
    )


def test_control_sequences_in_subjects_and_logs_are_neutralised() -> None:
    said = formatted(a_comparison(), "text")

    assert "\x1b" not in said
    assert "@team <b> [2J #7" in said
    # A log keeps its lines.
    assert "cc:  [31merror [0m\n in a.c" in said


def test_a_subject_mentions_nobody_in_a_pull_request() -> None:
    assert r"`aaaaaaaaaa` \@<!-- -->team \<b\> \[2J \#<!-- -->7 → " in formatted(
        a_comparison(), "md"
    )


def test_characters_that_xml_forbids_are_replaced_in_logs() -> None:
    error = parse_xml(formatted(a_comparison(), "junit")).find("testcase/error")

    assert error is not None
    assert error.text == LOG.replace("\x1b", "\ufffd")


def an_inconclusive_pair(*, cpu_ratio: float | None) -> CellAtCommits:
    return CellAtCommits(
        scenario="a-scenario",
        cell="default",
        before=1e6,
        after=1e6,
        comparison=Comparison(
            speedup_ratio=1.0,
            interval=Interval(low=0.9, high=1.1, confidence=0.95),
            verdict="inconclusive",
            pairs=6,
            per_block=(),
            p_value=0.9,
            launches_needed=40,
        ),
        margin=0.02,
        missing=(),
        cpu_ratio=cpu_ratio,
    )


@pytest.mark.parametrize("form", get_args(Format))
def test_each_format_has_the_noise_floor_and_the_launches_needed(
    form: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    said = formatted(
        CompareCommitsResult(
            sides=Sides(
                subject="shop",
                axis=("commit",),
                base=Side(name="0a1b", title="begin", commit=None),
                head=Side(name="1a1b", title="go on", commit=None),
            ),
            verdicts=tuple(judge_together([an_inconclusive_pair(cpu_ratio=1.5)])),
            noise=("a-scenario: Noise floor ±2.1 %.",),
            records=Path("r.jsonl"),
            ending="complete",
        ),
        form,
    )

    assert "±2.1 %" in said
    if form == "json":
        (cell,) = json.loads(said)["cells"]
        assert (cell["launches_needed"], cell["cpu_ratio"]) == (40, 1.5)
    else:
        assert "inconclusive, ~40 launches" in said
    if form == "junit":
        assert '<property name="noise"' in said
    if form in {"text", "md"}:
        assert "1.500×" in said


def test_the_table_fits_80_columns_also_with_an_inconclusive_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    cell = replace(
        an_inconclusive_pair(cpu_ratio=None),
        scenario="training",
        cell="binding=none,threads=2",
        before=1.234e9,
    )
    comparison = replace(a_comparison(), verdicts=tuple(judge_together([cell])))

    lines = formatted(comparison, "text").splitlines()

    (heading,) = (number for number, line in enumerate(lines) if line.startswith("verdict"))
    first, second = (line.split() for line in lines[heading + 1 : heading + 3])
    assert first == ["?", "inconclusive,", "training", "1.23", "s", "1.00", "ms", "1.000×"]
    assert second[:3] == ["~40", "launches", "[binding=none,threads=2]"]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("cpu_ratio", "differs"),
    # The interval is of speed-ups from 0.9 to 1.1: times from 1/1.1 = 0.91 to 1/0.9 = 1.11.
    [(None, False), (1.0, False), (1.1, False), (1.2, True), (0.8, True)],
)
def test_cpu_time_differs_if_its_ratio_is_outside_the_interval_of_elapsed_time(
    cpu_ratio: float | None, differs: bool
) -> None:
    assert an_inconclusive_pair(cpu_ratio=cpu_ratio).cpu_differs is differs
