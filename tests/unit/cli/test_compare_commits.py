"""The output of `corebound compare-commits`, in each of its formats."""

import io
from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.analysis.commit_comparison import CellAtCommits, InterleavedComparison
from corebound.analysis.compared import judge_together
from corebound.analysis.json_documents import compare_document
from corebound.cli.commands.compare_commits import junit
from corebound.cli.output.console import Console
from corebound.cli.output.sections import print_sections
from corebound.present.compare import compare_sections, rows_table
from corebound.present.markdown import markdown
from corebound.present.sections import Marked, Ratio
from corebound.records.run_record import Commit
from corebound.runner import Ending
from corebound.stats.comparison import Comparison
from corebound.stats.intervals import Interval
from corebound.workflow import compare_commits
from corebound.workflow.comparison_sides import sides_of_commits
from corebound.workflow.execute import RunResult
from support.build import a_run
from support.known import known
from support.markup import parse_xml
from support.tables import column
from support.texts import in_order

SUBJECT = "@team <b>\x1b[2J #7"


LOG = "cc: \x1b[31merror\x1b[0m\n\tin a.c"


def a_comparison() -> InterleavedComparison:
    base, head = (
        Commit(sha=sign * 40, subject=SUBJECT, committed_at="2026-03-14T00:00:00Z", dirty=False)
        for sign in "ab"
    )
    cell = CellAtCommits(
        scenario="io", cell="n=1", before=1e6, after=None, comparison=None, margin=0.01,
        missing=(LOG,),
    )  # fmt: skip
    return InterleavedComparison(
        sides=sides_of_commits("shop", base, head),
        cells=(cell,),
        noise=(),
        records=Path("records/a.jsonl"),
        ending="complete",
    )


def on_a_terminal(comparison: InterleavedComparison, width: int = 80) -> str:
    out = io.StringIO()
    print_sections(compare_sections(comparison), Console(file=out, width=width))
    return out.getvalue()


def test_control_sequences_in_subjects_and_logs_are_neutralised() -> None:
    said = on_a_terminal(a_comparison())

    assert "\x1b" not in said
    assert "@team <b> [2J #7" in said
    # A log keeps its lines.
    assert "[31merror [0m\n in" in said


def test_in_a_pull_request_a_subject_mentions_nobody_and_a_log_is_literal() -> None:
    said = markdown(compare_sections(a_comparison()))

    assert r"\@<!-- -->team \<b\> \[2J \#<!-- -->7" in said
    assert in_order(said, "\n```\ncc:", "[31merror", "\n\tin a.c\n```\n")


def test_characters_that_xml_forbids_are_replaced_in_logs() -> None:
    error = known(parse_xml(junit(a_comparison())).find("testcase/error"))

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


def test_a_row_has_ratio_interval_verdict_and_the_launches_needed() -> None:
    table = rows_table(judge_together([an_inconclusive_pair(cpu_ratio=None)]), "base, head")

    (ratio,), (judged,) = column(table, "change (95 % CI)"), column(table, "verdict")
    assert ratio == Ratio("1.000×", "−10 to +10 %")
    assert isinstance(judged, Marked)
    assert in_order(judged.text, "? inconclusive", "40 launches")


def test_noise_floor_and_cpu_time_are_told_wherever_the_verdict_is() -> None:
    comparison = replace(
        a_comparison(),
        cells=tuple(judge_together([an_inconclusive_pair(cpu_ratio=1.5)])),
        noise=("a-scenario: Noise floor ±2.1 %.",),
    )

    texts = on_a_terminal(comparison), markdown(compare_sections(comparison))
    assert all("±2.1 %" in text and "1.500×" in text for text in texts)
    assert '<property name="noise"' in junit(comparison)
    document = compare_document(comparison)
    (cell,) = document["cells"]
    assert (cell["launches_needed"], cell["cpu_ratio"]) == (40, 1.5)


def test_cpu_time_is_no_evidence_about_memory() -> None:
    cell = replace(an_inconclusive_pair(cpu_ratio=1.5), is_memory=True)

    text = on_a_terminal(replace(a_comparison(), cells=tuple(judge_together([cell]))))

    assert "CPU times" not in text


def test_the_table_fits_80_columns_also_with_an_inconclusive_verdict() -> None:
    cell = replace(
        an_inconclusive_pair(cpu_ratio=None),
        scenario="training",
        cell="binding=none,threads=2",
        before=1.234e9,
    )
    lines = on_a_terminal(replace(a_comparison(), cells=tuple(judge_together([cell])))).splitlines()

    (heading,) = (number for number, line in enumerate(lines) if "base, head" in line)
    first, second = (line.split() for line in lines[heading + 1 : heading + 3])
    assert first == ["training", "1.23", "s", "1.000×", "?", "inconclusive"]
    assert second[:4] == ["(binding=none,threads=2)", "→", "1.00", "ms"]
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


@pytest.mark.parametrize(("ending", "code"), [("out of time", 5), ("complete", 0)])
def test_a_budget_that_building_has_used_up_is_no_success(ending: Ending, code: int) -> None:
    result = RunResult(run=a_run(), file=Path("run.jsonl"), launches=(), ending=ending)

    assert compare_commits._exit_code((), result) == code
