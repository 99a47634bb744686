"""The summary of a nightly run, as text and as JSON."""

import json
import re
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from typer.testing import CliRunner

from corebound.cli.app import app
from corebound.records import history_files
from corebound.workflow.nightly_steps import Failure, NightlyResult
from corebound.workflow.nightly_summary import NightlySummary, merge_regressions
from support.known import known
from support.nightly import a_step, carry_on
from support.texts import in_order
from unit.report.test_changes import a_rate

ALARM: dict[str, Any] = {
    "id": "3f9a",
    "alarm": True,
    "importance": "primary",
    "title": "Parsing a large file",
    "cell": "threads=1",
    "size": "▼ 1.05× slower (95 % CI 1.04–1.06)",
    "last_good": {"at": "2026-03-13", "commit": "9be1f0aa17c0", "subject": "before"},
    "first_bad": {"at": "2026-03-14", "commit": "4f0c2a91d3ff", "subject": "look\x1b twice"},
    "link": "https://speed.example.org/history/a.html",
}

SUMMARY = "4 series of 4 benchmarks: 1.18× slower (geometric mean), largest 1.31×"


def a_summary(outcome: NightlyResult, *alarms: dict[str, Any]) -> NightlySummary:
    entry = {
        "id": "4f0c2a91d3",
        "summary": SUMMARY,
        "last_good": ALARM["last_good"],
        "first_bad": alarms[0]["first_bad"] if alarms else ALARM["first_bad"],
        "changes": [alarm["id"] for alarm in alarms],
        "link": "https://speed.example.org/history.html#commit-4f0c2a91d3",
    }
    told = {
        "changes": [*alarms, {**ALARM, "alarm": False, "title": "no news"}],
        "commits": [entry],
        "failing": [],
    }
    return NightlySummary(
        started_at="20260314T021703Z", host="box-7", project="shop", result=outcome,
        regressions=told, site="https://speed.example.org", partial=False,
    )  # fmt: skip


def test_the_summary_mentions_uncommitted_changes() -> None:
    told = replace(
        a_summary(NightlyResult(codes={"run": 0}, failure=None)), snapshot="1f0c+dirty.9f8e"
    )

    assert in_order(told.text, "uncommitted", "1f0c+dirty.9f8e", "not part")
    assert told.document["snapshot"] == "1f0c+dirty.9f8e"


def test_the_summary_lists_regressions_by_commit_with_its_link() -> None:
    alarms = [{**ALARM, "id": name, "title": name} for name in ("a", "b", "c", "d")]
    told = a_summary(NightlyResult(codes={"run": 0, "regressions": 1}, failure=None), *alarms)

    head, commit, *series, more, link, site = told.text.splitlines()
    assert in_order(head, "shop on box-7", "20260314T021703Z: 4 new regressions")
    assert in_order(commit, "4f0c2a91d3 look  twice", SUMMARY)
    change = "▼ 1.05× slower (95 % CI 1.04–1.06)"
    assert series == [f"  {name} [threads=1]: {change}" for name in "abc"]
    assert more.endswith("1 more")
    assert link == "  https://speed.example.org/history.html#commit-4f0c2a91d3"
    assert site == "https://speed.example.org"
    assert told.document["status"] == "regression"
    assert [one["title"] for one in told.document["regressions"]] == [*"abcd"]


def test_regressions_of_time_and_memory_are_in_one_summary() -> None:
    outputs = [
        a_summary(NightlyResult(codes={}, failure=None), {**ALARM, "id": name}).regressions or {}
        for name in ("time", "memory")
    ]
    outputs[0] = {**outputs[0], "failing": [{"reason": "why"}]}

    merged = known(merge_regressions(outputs))

    assert [each["id"] for each in merged["changes"] if each["alarm"]] == ["time", "memory"]
    assert len(merged["commits"]) == 2
    assert merged["failing"] == [{"reason": "why"}]
    assert merge_regressions([]) is None


def test_a_recommendation_that_no_longer_holds_is_listed() -> None:
    checked = [
        {"answer": "lost", "title": "ResNet-50", "text": "One CPU is no longer recommended."},
        {"answer": "inconclusive", "title": "Hashing", "text": "Inconclusive: it was not."},
        {"answer": "holds", "title": "Sorting", "text": "The recommendation holds: one CPU."},
    ]
    outcome = NightlyResult(codes={"run": 0, "regressions": 0, "verify": 1}, failure=None)
    told = replace(a_summary(outcome), recommendations=checked)

    head, lost, unsure, _ = told.text.splitlines()
    assert in_order(head, "shop on box-7", "no new regression", "1 recommendation lost")
    assert in_order(lost, "✗ ResNet-50: ", checked[0]["text"])
    assert in_order(unsure, "? Hashing: ", checked[1]["text"])
    assert (told.status, told.exit_code) == ("recommendation lost", 1)
    assert told.document["recommendations"] == checked


def test_a_subject_mentions_nobody_in_a_summary() -> None:
    bad = {**ALARM["first_bad"], "subject": "<!channel> R&D"}
    told = a_summary(
        NightlyResult(codes={"regressions": 1}, failure=None), {**ALARM, "first_bad": bad}
    )

    assert "4f0c2a91d3 <!channel> R&D: 4" in told.text
    assert "4f0c2a91d3 &lt;!channel&gt; R&amp;D: 4" in told.document["text"]


def test_a_lower_rate_is_described_as_less(tmp_path: Path) -> None:
    series = replace(a_rate(0.8), title="Matrix product", unit="MB/s")
    history_files.keep("trees", [replace(series, points=series.points[:60])], tmp_path)
    words = ["regressions", "--records", str(tmp_path), "--json"]
    told = json.loads(CliRunner().invoke(app, words).stdout)
    outcome = NightlyResult(codes={"regressions": 1}, failure=None)

    (alarm,) = told["changes"]
    (_, _, line, *_) = replace(a_summary(outcome), regressions=told).text.splitlines()

    assert (alarm["unit"], alarm["more_is_better"]) == ("MB/s", True)
    assert line.startswith("  Matrix product: ")
    assert re.search(r"▼ 1\.2\d× less \(95 % CI 1", line), line


def test_the_summary_lists_series_that_were_not_analysed() -> None:
    outcome = NightlyResult(codes={"run": 0, "regressions": 5, "report": 0}, failure=None)
    lost = {"title": "Matrix product", "cell": "threads=1", "reason": "ValueError: a\nb (c.py)"}
    told = {"changes": [], "failing": [], "not_analysed": [lost]}

    said = replace(a_summary(outcome), regressions=told).text

    assert in_order(said, "? Matrix product [threads=1]: ", "not analysed", "ValueError: a")


def test_a_crashed_step_is_reported_as_a_bug(tmp_path: Path) -> None:
    outcome, _ = carry_on(tmp_path, a_step("regressions", 70, accepted_codes=frozenset({0, 1})))
    told = a_summary(outcome, ALARM)

    assert outcome.exit_code == 70
    assert told.status == "crashed"
    assert told.text.splitlines()[0].endswith("CRASHED at `regressions`")
    assert "bug in corebound" in told.text


def test_the_summary_says_that_the_budget_ran_out_before_anything_was_measured(
    tmp_path: Path,
) -> None:
    outcome, _ = carry_on(
        tmp_path, a_step("run", 5, accepted_codes=frozenset({0, 4, 5})), a_step("report")
    )
    told = a_summary(outcome)

    assert outcome.exit_code == 5
    assert told.status == "budget too short"
    assert told.text.splitlines()[0].endswith("everything was measured")


def test_the_summary_of_a_failed_run_has_the_step_and_the_end_of_its_log() -> None:
    failure = Failure(step="report", code=4, log=Path("a/report.log"), tail=("no room",))
    told = a_summary(NightlyResult(codes={"run": 0, "report": 4}, failure=failure))

    lines = told.text.splitlines()

    assert lines[0].endswith("FAILED at `report`")
    assert lines[-1] == "  no room"
    assert told.document["failed"] == {"step": "report", "code": 4}
