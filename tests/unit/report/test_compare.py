"""The comparison of two runs: which cells it pairs, counts and reports."""

import io
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from corebound.analysis.change_history import build_change_history
from corebound.analysis.commit_comparison import compare_imported_commits
from corebound.analysis.host_records import group_by_host
from corebound.analysis.run_comparison import (
    RUNS_CAVEAT,
    PastResults,
    commit_title,
    compare_runs,
    latest_comparisons,
    past_results,
    run_variation_note,
)
from corebound.analysis.scenario_result import analyse_scenario
from corebound.analysis.wording import label, plain
from corebound.cli.app import app
from corebound.cli.output.console import Console
from corebound.cli.output.sections import print_sections
from corebound.errors import InputError
from corebound.present.compare import compare_sections, compare_table
from corebound.present.sections import Table
from corebound.records import codec, documents, history_files, jsonl
from corebound.records.history import HistoryPoints
from corebound.records.jsonl import StoredRun
from corebound.records.launch_record import Launch
from corebound.records.run_record import Commit, EnvironmentLock, Run
from corebound.records.telemetry import HostOverTime, HostWindow
from corebound.report.inputs import PageContext
from corebound.report.pages.compare import compare_page
from corebound.report.pages.hosts import host_page
from corebound.report.pages.overview import overview_flags
from corebound.report.scenario.verdict import flags
from corebound.scenario.matrix import expand
from corebound.stats import launch_summary
from corebound.stats.history.series import series_of_run
from corebound.stats.intervals import Interval
from corebound.stats.launch_summary import LaunchSummary, summarise_launch
from corebound.stats.noise_floor import COPY_AXIS, lock_digest
from corebound.stats.warmup import Warmup
from corebound.workflow.resolve_refs import resolve_runs
from support.build import a_calibration, a_machine, a_run, a_scenario, a_series, timed
from support.tables import column
from support.texts import in_order, numbers_in

SCENARIO = a_scenario(name="matmul", measure={"launches": {"min": 6, "max": 6}})
NOW = "2026-03-03T00:00:00Z"
CELLS = expand(SCENARIO, "matmul.yaml", None)
Record = tuple[Run, tuple[Launch, ...]]


def a_record(
    day: int, *, slower: float = 1.0, spread: float = 0.005, commit: str = "", **of_the_run: Any
) -> Record:
    """Six launches of each of two cells; `slower` is of the first."""
    noise = random.Random(day)
    run = replace(
        a_run(
            scenarios=(SCENARIO,), run_id=f"run{day:02}", started_at=f"2026-03-{day:02}T02:00:00Z"
        ),
        commit=Commit(
            sha=commit * 40, subject="a | b", committed_at="2026-03-01T00:00:00Z", dirty=False
        )
        if commit
        else None,
        **of_the_run,
    )
    launches = tuple(
        timed(
            noise.gauss(1, spread) * (slower if position == 0 else 1),
            cell=cell,
            run=run.id,
            block=block,
            position=position,
        )
        for block in range(6)
        for position, cell in enumerate(CELLS)
    )
    return run, launches


def a_week(**of_the_runs: Any) -> PastResults:
    """What seven runs before the eighth day said."""
    return past_results(
        series for day in range(1, 8) for series in series_of_run(*a_record(day, **of_the_runs))
    )


def kept(folder: Path, *records: Record) -> Path:
    for run, launches in records:
        file = jsonl.file_of(run, folder)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(
            b"".join([codec.encode(run), *(codec.encode(launch) for launch in launches)])
        )
    return folder


def compare(records: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["compare", *words, "--records", str(records)])


def test_a_cell_that_got_slower_is_found_and_comes_first() -> None:
    found = compare_runs(a_record(1), a_record(2, slower=1.4))

    assert [cell.is_finding for cell in found.cells] == [True, False]
    assert found.cells[0].verdict == "slower"
    assert found.cells[0].speedup_ratio == pytest.approx(1 / 1.4, rel=0.01)


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        ((0.8e6, 1.2e6), "800 µs–1.20 ms"),
        ((1.0e6, 1.4e6), "1.00–1.40"),
        ((1.0e6, math.inf), "values differ too much"),
        (None, ""),
    ],
)
def test_an_interval_has_a_unit_if_it_is_another_than_the_values(
    ends: tuple[float, float] | None, shown: str
) -> None:
    comparison = compare_runs(a_record(1), a_record(2, slower=1.2))
    span = ends and Interval(low=ends[0], high=ends[1], confidence=0.95)
    cell = comparison.cells[0]
    cell = replace(cell, after_summary=replace(cell.after_summary, interval=span))

    (both,) = column(compare_table(replace(comparison, cells=(cell,))), "before, after")

    assert both.after.ends == shown


def test_each_launch_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # To find where it was steady is most of what a page of two runs costs.
    looked: list[str] = []

    def look(launch: Launch, warmup: Warmup, metric: int) -> LaunchSummary:
        looked.append(f"{launch.run} {launch.id}")
        return summarise_launch(launch, warmup, metric)

    monkeypatch.setattr(launch_summary, "summarise_launch", look)
    before, after = a_record(1), a_record(2)

    compare_runs(before, after)

    assert sorted(looked) == sorted(
        f"{launch.run} {launch.id}" for launch in (*before[1], *after[1])
    )


def test_blocks_of_two_runs_are_no_pairs() -> None:
    comparison = compare_runs(a_record(1), a_record(2))

    assert [cell.pairs for cell in comparison.cells] == [0, 0]


def test_a_cell_that_is_not_decided_says_how_many_launches_would_decide_it() -> None:
    before, after = a_record(8, spread=0.05), a_record(9, spread=0.05)
    page = compare_page(compare_runs(before, after, a_week(spread=0.05)), PageContext(now=NOW))

    notes = {one.word.word: one.notes for one in column(page.others, "verdict")}
    (note,) = notes["inconclusive"]
    assert re.fullmatch(r"about [0-9,]+ launches each", note)


def test_a_commit_with_changes_of_its_own_cannot_be_built_again() -> None:
    run, launches = a_record(2, slower=1.4, commit="b")
    assert run.commit is not None
    dirty = (replace(run, commit=replace(run.commit, dirty=True)), launches)

    page = compare_page(compare_runs(a_record(1, commit="a"), dirty), PageContext(now=NOW))

    assert column(page.findings, "reproduce")[0].lines[0].line.startswith("corebound run ")


RUN_OF_ANOTHER_VARIABLE = (
    a_record(2)[0],
    tuple(
        replace(launch, cell=replace(launch.cell, env=(("FAST", "1"),)))
        for launch in a_record(2)[1]
    ),
)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (a_record(1), "the same run"),
        (
            a_record(2, host=replace(a_machine(name="other"), id="other")),
            "two hosts, a-host .* and other",
        ),
        (a_record(2, host=replace(a_machine(), kernel="7.0")), r"kernel 6\.1\.0 to 7\.0"),
        (RUN_OF_ANOTHER_VARIABLE, r"environment variables in both.*\n.*`matrix: env:`"),
    ],
)
def test_runs_that_differ_in_more_than_time_are_refused_by_what_differs(
    other: Record, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        compare_runs(a_record(1), other)


def test_cells_of_one_run_only_are_named() -> None:
    run, launches = a_record(1)
    fewer = tuple(launch for launch in launches if launch.position == 0)

    comparison = compare_runs((run, fewer), a_record(2))

    assert comparison.only_in_one == ((CELLS[1].id, "run02"),)


def test_each_host_has_its_latest_two_comparable_runs() -> None:
    other_kernel = a_record(2, host=replace(a_machine(), kernel="7.0"))

    (comparison,) = latest_comparisons([a_record(3), other_kernel, a_record(1)])

    assert (comparison.before.id, comparison.after.id) == ("run01", "run03")


def test_a_commit_measured_again_is_also_compared_with_the_one_before_it() -> None:
    nights = [a_record(day, commit=commit) for day, commit in enumerate("aabb", 1)]

    comparisons = latest_comparisons(nights)

    assert [(comparison.before.id, comparison.after.id) for comparison in comparisons] == [
        ("run03", "run04"),
        ("run02", "run04"),
    ]


def test_without_commits_there_is_one_comparison_a_host() -> None:
    comparisons = latest_comparisons([a_record(1), a_record(2), a_record(3)])

    assert [(comparison.before.id, comparison.after.id) for comparison in comparisons] == [
        ("run02", "run03")
    ]


def test_the_command_hides_what_does_not_differ_and_says_how_many(tmp_path: Path) -> None:
    folder = kept(tmp_path, a_record(1), a_record(2, slower=1.4))

    result = compare(folder, "run01", "run02")

    said = " ".join(result.output.split())
    assert result.exit_code == 0
    assert f"({label(CELLS[0]).whole})" in said
    assert label(CELLS[1]).whole not in said
    assert in_order(said, "1 cell slower", "2 cells", "1 without a clear", "--all")
    assert RUNS_CAVEAT in said


def test_two_commits_are_their_latest_runs_on_one_host(tmp_path: Path) -> None:
    folder = kept(
        tmp_path,
        a_record(1, commit="a"),
        a_record(2, commit="a"),
        a_record(3, commit="b"),
        a_record(4, commit="b", host=replace(a_machine(name="other"), id="other")),
    )

    result = compare(folder, "aaaa", "bbbb", "--json")

    document = json.loads(result.output)
    assert (document["before"]["run"], document["after"]["run"]) == ("run02", "run03")
    assert len(document["cells"]) == 2


@pytest.mark.parametrize("form", ["md", "text"])
def test_the_subject_of_a_commit_calls_nobody_and_steers_no_terminal(
    form: str, tmp_path: Path
) -> None:
    run, launches = a_record(2, commit="a")
    assert run.commit is not None
    subject = "@team <img src=x>\x1b[2J *bold*"
    run = replace(run, commit=replace(run.commit, subject=subject))
    folder = kept(tmp_path, a_record(1), (run, launches))

    result = compare(folder, "run01", "run02", "--format", form)

    shown = {
        "md": r"\@<!-- -->team \<img src=x\> \[2J \*bold\*",
        "text": "@team <img src=x> [2J *bold*",
    }
    assert f"aaaaaaaaaa {shown[form]}" in result.output.replace("\n", " ")
    assert "\x1b" not in result.output


@pytest.mark.parametrize(
    ("name", "text"),
    [("zzzz", "No run, commit or file"), ("run", "several runs match"), ("", "No run")],
)
def test_a_name_that_means_no_one_run_is_bad_input(tmp_path: Path, name: str, text: str) -> None:
    folder = kept(tmp_path, a_record(1), a_record(2))

    result = compare(folder, name, "run01")

    assert isinstance(result.exception, InputError)
    assert text in str(result.exception)
    assert result.exception.exit_code == 2


def test_a_file_names_its_run(tmp_path: Path) -> None:
    one, two = a_record(1), a_record(2)
    folder = kept(tmp_path, one, two)

    result = compare(folder, str(jsonl.file_of(one[0], folder)), "run02")

    assert result.exit_code == 0


def test_the_noise_floor_stands_beside_the_comparison_in_words_and_on_its_page(
    tmp_path: Path,
) -> None:
    before, after = a_record(1), a_record(2, slower=1.4)
    folder = kept(tmp_path / "records", before, after)
    source = after[0].scenarios[0]
    calibration = a_calibration(
        host=after[0].host.id,
        scenario="matmul",
        sha256=source.sha256,
        lock=lock_digest(after[0].environments, "host"),
    )
    documents.CALIBRATIONS.keep(calibration, folder)

    said = [
        compare(folder, "run01", "run02", *form) for form in ((), ("--format", "md"), ("--json",))
    ]

    text = "matmul: Noise floor ±2.1 % with 6 launches of each"
    assert all(text in one.stdout for one in said)
    page = compare_page(
        compare_runs(before, after),
        PageContext(now="2026-03-03T00:00:00Z", calibrations=[calibration]),
    )
    assert text in "".join(piece.text for piece in page.hero.support)


def test_the_site_has_a_page_of_any_two_runs_that_are_asked_for(tmp_path: Path) -> None:
    records = kept(
        tmp_path, *(a_record(day, commit=commit) for day, commit in enumerate("abcd", 1))
    )
    parts = ["report", "--records", str(records), "--out", str(tmp_path / "site")]

    done = CliRunner().invoke(
        app, [*parts, "--compare", "run01..run03", "--compare", "run03..run04"]
    )

    assert done.exit_code == 0, done.output
    pages = {file.name for file in (tmp_path / "site" / "compare").iterdir()}
    assert pages >= {"run01-run03.html", "run03-run04.html"}
    index = (tmp_path / "site" / "compare.html").read_text()
    assert "compare/run01-run03.html" in index


@pytest.mark.parametrize(
    ("name", "text"),
    [("run01", "two runs"), ("run01..", "two runs"), ("run01..nobody", "matches `nobody`")],
)
def test_two_runs_that_are_not_meant_are_bad_input(tmp_path: Path, name: str, text: str) -> None:
    records = kept(tmp_path, a_record(1), a_record(2))

    done = CliRunner().invoke(
        app, ["report", "--records", str(records), "--out", str(tmp_path / "s"), "--compare", name]
    )

    assert isinstance(done.exception, InputError)
    assert text in done.exception.what


def test_earlier_runs_of_the_same_cells_narrow_the_interval_and_are_told(tmp_path: Path) -> None:
    nights = [a_record(day) for day in range(1, 9)]
    folder = kept(tmp_path, *nights, a_record(9, slower=1.05))
    path = kept(tmp_path / "alone", nights[-1], a_record(9, slower=1.05))

    known, unknown = (
        json.loads(compare(path, "run08", "run09", "--json").stdout) for path in (folder, path)
    )

    learned, assumed = known["cells"][0], unknown["cells"][0]
    assert (learned["verdict"], assumed["verdict"]) == ("slower", "inconclusive")
    assert learned["between_runs"]["runs"] == 7
    assert learned["between_runs"]["source"] == "earlier runs"
    assert learned["between_runs"]["spread_ratio"] < 0.01
    assert assumed["between_runs"]["source"] == "default"
    assert assumed["between_runs"]["spread_ratio"] == pytest.approx(0.037)
    assert learned["floor_ratio"] < 0.05
    assert assumed["floor_ratio"] > 0.1
    assert learned["delay_ratio"] == 1.0


def test_runs_after_the_later_one_and_in_other_circumstances_are_no_history() -> None:
    before, after = a_record(8), a_record(9)
    newer = [replace(a_machine(), kernel="7.0") for _ in range(7)]
    others = [a_record(day, host=host) for day, host in enumerate(newer, 1)]
    later = [a_record(day) for day in range(10, 17)]

    past = past_results(
        series for one in (*others, *later, before, after) for series in series_of_run(*one)
    )

    comparison = compare_runs(before, after, past)
    assert [cell.between.runs for cell in comparison.cells] == [0, 0]


def test_what_calibrate_launched_is_a_run_of_the_baseline(tmp_path: Path) -> None:
    # Seven calibrations: the baseline twice, in copies that differ in name alone.
    folder = kept(tmp_path, a_record(8), a_record(9))
    for day in range(1, 8):
        run, launches = a_record(day)
        twice = tuple(
            replace(
                launch,
                cell=replace(CELLS[0], axes=(*CELLS[0].axes, (COPY_AXIS, "ab"[launch.position]))),
            )
            for launch in launches
        )
        kept(documents.CALIBRATIONS.folder(folder), (run, twice))

    said = compare(folder, "run08", "run09", "--json")

    runs = {one["id"]: one["between_runs"]["runs"] for one in json.loads(said.stdout)["cells"]}
    assert runs == {CELLS[0].id: 7, CELLS[1].id: 0}


def test_a_run_that_others_delayed_is_told_and_is_no_finding() -> None:
    run, launches = a_record(9, slower=1.5)
    window = HostWindow(
        from_ms=0, to_ms=1000, ran_ns=500_000_000, waited_ns=250_000_000, foreign_ns=250_000_000
    )
    host = HostOverTime(cpus=(), windows=(window,), looks=1, look_ns=0)
    delayed = tuple(replace(launch, host=host) for launch in launches)

    plain = compare_runs(a_record(8), (run, launches), a_week()).cells[0]
    comparison = compare_runs(a_record(8), (run, delayed), a_week())

    assert plain.verdict == "slower"
    assert {cell.verdict for cell in comparison.cells} == {"inconclusive"}
    assert comparison.cells[0].delay_ratio == pytest.approx(1.5)
    assert in_order(run_variation_note(comparison), "delayed", "unequally", "2 cells")


def without_figure(record: Record) -> Record:
    """A run of which no launch of its second cell came to an end."""
    run, launches = record
    failed = (
        replace(one, status="failed", reason="it failed", workers=()) if one.position == 1 else one
        for one in launches
    )
    return run, tuple(failed)


def uncommitted(record: Record) -> Record:
    """A run of a tree that was not all committed."""
    run, launches = record
    assert run.commit is not None
    return replace(run, commit=replace(run.commit, dirty=True)), launches


def test_what_failed_in_one_of_two_runs_does_not_count_as_compared() -> None:
    page = compare_page(
        compare_runs(a_record(1), without_figure(a_record(2))), PageContext(now=NOW)
    )

    assert in_order(plain(page.hero.support), "1 cell ", "1 without", "1 more not", "missing")
    assert numbers_in(page.others_summary) == [1, 1]


@pytest.mark.parametrize(
    ("slower", "said"),
    [
        (1.0, "1 cell compared, 1 without a clear difference; 1 more not compared"),
        (1.2, "1 cell compared, 0 without a clear difference; 1 more not compared"),
    ],
)
def test_the_command_counts_alike(tmp_path: Path, slower: float, said: str) -> None:
    folder = kept(tmp_path, a_record(1), without_figure(a_record(2, slower=slower)))

    result = compare(folder, "run01", "run02")

    assert CELLS[1].id not in result.output
    assert said in " ".join(result.output.split())


def test_where_no_series_has_enough_points_the_command_shows_all_of_them(tmp_path: Path) -> None:
    short = a_series([1e6, 1e6, 1.5e6], project="trees", scenario="s", title="s")
    history_files.keep("trees", [short], tmp_path)
    before, after = (
        point.commit.sha for point in (short.points[1], short.points[2]) if point.commit
    )

    said = compare(tmp_path, before, after).output

    assert "1.50× slower" in said
    assert "too few points" in said
    assert "--all" not in said


def test_series_without_a_figure_at_one_commit_do_not_count_as_compared() -> None:
    known, other = (
        a_series([1e6] * 20, project="trees", scenario="s", cell=cell) for cell in ("n=1", "n=2")
    )
    points = [*other.points]
    points[15] = replace(points[15], value=None, missing="it failed")
    histories = build_change_history((known, replace(other, points=HistoryPoints.of(points))))
    before, after = (point.commit.sha for point in (points[5], points[15]) if point.commit)

    page = compare_page(
        compare_imported_commits("trees", before, after, histories),
        PageContext(now=NOW, history=histories),
    )

    assert in_order(plain(page.hero.support), "1 series", "1 without", "1 more not", "missing")


def test_changes_that_were_not_committed_are_told_wherever_two_runs_are(tmp_path: Path) -> None:
    one, two = a_record(1, commit="a"), uncommitted(a_record(2, commit="a"))
    folder = kept(tmp_path, one, two)

    page = compare_page(compare_runs(one, two), PageContext(now=NOW))
    (hosted,) = group_by_host([one, two])
    host = host_page(hosted, now=NOW)
    before, after = compare(folder, "run01", "run02").output.splitlines()[:2]
    told = json.loads(compare(folder, "run01", "run02", "--json").stdout)

    said = "a" * 10 + "+dirty"
    assert [said in text for _, text, _ in page.sides] == [False, True]
    assert [said in commit_title(run.commit) for run in host.records.latest_runs if run.commit] == [
        True,
        False,
    ]
    assert (said in before, said in after) == (False, True)
    assert (told["before"]["dirty"], told["after"]["dirty"]) == (False, True)


def test_a_working_tree_with_changes_is_named_on_pages_and_in_the_terminal(tmp_path: Path) -> None:
    run, launches = a_record(1, commit="a")
    changed = Commit(sha="a" * 40, subject="", committed_at=NOW, dirty=True, tree="d" * 40)
    name = "a" * 10 + "+dirty." + "d" * 7
    lock = EnvironmentLock(
        name=launches[0].cell.environment, sha256="", python="3", packages=(), commit=changed
    )
    dirty = replace(run, id="run02", commit=changed, environments=(lock,))
    run = replace(run, environments=(replace(lock, commit=run.commit),))
    folder = kept(tmp_path, (run, launches), (dirty, launches))
    (one,) = (analyse_scenario(dirty, source, launches) for source in dirty.scenarios)

    told = CliRunner().invoke(app, ["regressions", "--records", str(folder)])
    pair = compare(folder, "a" * 10, name[:13])

    assert [name in flag.title for flag in (*flags(one, ()), *overview_flags([one], ()))] == [
        True,
        True,
    ]
    assert in_order(told.stderr, "run02", "uncommitted changes", name)
    before, after = pair.output.splitlines()[:2]
    assert (before.split()[1], after.split()[1]) == ("run01,", "run02,")
    # Alone, the hash never means what was measured with changes.
    with pytest.raises(InputError, match="No run, commit or file"):
        resolve_runs("aaaa", "run02", [StoredRun(file=tmp_path, run=dirty)], tmp_path)


def test_a_narrow_terminal_breaks_no_name_and_no_value() -> None:
    stream = io.StringIO()

    print_sections(
        compare_sections(compare_runs(a_record(1), a_record(2)), show_all=True),
        Console(file=stream, width=80),
    )

    below = [line for line in stream.getvalue().splitlines() if line.startswith("(")]
    assert {line.partition(")")[0] for line in below} == {f"({label(one).whole}" for one in CELLS}


def test_terminal_and_page_have_one_table_of_what_differs() -> None:
    comparison = compare_runs(a_record(1), a_record(2, slower=1.4))

    (table,) = (one for one in compare_sections(comparison) if isinstance(one, Table))
    on_page = compare_page(comparison, PageContext(now=NOW)).findings

    assert table.columns == on_page.columns
    assert table.in_words == on_page.in_words
