"""What `compare-commits` tells of two commits, whatever their subjects and build logs hold."""

from __future__ import annotations

from pathlib import Path

from corebound.analysis.commit_comparison import CellAtCommits, CellVerdict
from corebound.cli.commands.compare_commits import formatted
from corebound.records.run_record import Commit
from corebound.workflow.compare_commits import CompareCommitsResult
from corebound.workflow.sides import sides_of_commits
from support.markup import parse_xml

SUBJECT = "@team <b>\x1b[2J #7"
LOG = "cc: \x1b[31merror\x1b[0m\n\tin a.c"


def a_comparison() -> CompareCommitsResult:
    base, head = (
        Commit(sha=sign * 40, subject=SUBJECT, committed_at="2026-03-14T00:00:00Z", dirty=False)
        for sign in "ab"
    )
    pair = CellAtCommits(
        scenario="io", cell="n=1", base_ns=1e6, head_ns=None, comparison=None, margin=0.01,
        missing=(LOG,),
    )  # fmt: skip
    return CompareCommitsResult(
        sides=sides_of_commits("shop", base, head),
        judged=(CellVerdict(pair=pair, verdict=None, is_regression=False),),
        noise=(),
        records=Path("records/a.jsonl"),
        ending="complete",
    )


def test_a_terminal_obeys_neither_a_subject_nor_a_log() -> None:
    said = formatted(a_comparison(), "text")

    assert "\x1b" not in said
    assert "@team <b> [2J #7" in said
    # A log keeps its lines.
    assert "cc:  [31merror [0m\n in a.c" in said


def test_a_subject_calls_nobody_in_a_pull_request() -> None:
    assert r"`aaaaaaaaaa` \@<!-- -->team \<b\> \[2J \#<!-- -->7 → " in formatted(
        a_comparison(), "md"
    )


def test_a_log_that_xml_has_no_way_to_write_leaves_the_rest_readable() -> None:
    error = parse_xml(formatted(a_comparison(), "junit")).find("testcase/error")

    assert error is not None
    assert error.text == LOG.replace("\x1b", "\ufffd")
