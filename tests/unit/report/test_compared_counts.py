"""How many two runs or two commits have in common: what has a figure twice, and what has not."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from corebound.analysis.change_history import build_change_history
from corebound.analysis.commit_comparison import compare_commits
from corebound.analysis.comparison import compare_runs
from corebound.analysis.host_records import host_studies
from corebound.analysis.scenario_result import study
from corebound.analysis.wording import plain
from corebound.cli.app import app
from corebound.cli.commands.compare import print_comparison, text_of_runs
from corebound.cli.output.console import Console
from corebound.errors import InputError
from corebound.records.history import HistoryPoints
from corebound.records.run_record import Commit, EnvironmentLock
from corebound.report.pages.compare import compare_page
from corebound.report.pages.compare_commits import commits_page
from corebound.report.pages.host import host_page
from corebound.report.pages.overview import overview_flags
from corebound.report.scenario.verdict import flags
from corebound.workflow.resolve_refs import StoredRun, resolve_runs
from support.build import a_series
from unit.report.test_compare import CELLS, NOW, Record, a_record, kept


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
    page = compare_page(compare_runs(a_record(1), without_figure(a_record(2))), now=NOW)

    assert plain(page.hero.support).startswith(
        "1 cell compared, 1 without a clear difference; 1 more not compared, for a figure is"
        " missing. "
    )
    assert page.folded == "No clear difference: 1; not compared, for a figure is missing: 1"


def test_where_all_have_figures_nothing_is_said_of_others() -> None:
    page = compare_page(compare_runs(a_record(1), a_record(2)), now=NOW)

    assert "2 cells compared, 2 without a clear difference. " in plain(page.hero.support)
    assert page.folded == "No clear difference: 2"


@pytest.mark.parametrize(
    ("slower", "said"),
    [
        (1.0, "1 of 1 cells do not clearly differ; 1 cell without results; "),
        (1.2, "\n1 cell without results; --all lists them."),
    ],
)
def test_the_command_counts_alike(tmp_path: Path, slower: float, said: str) -> None:
    folder = kept(tmp_path, a_record(1), without_figure(a_record(2, slower=slower)))

    result = CliRunner().invoke(app, ["compare", "run01", "run02", "--records", str(folder)])

    assert CELLS[1].id not in result.output
    assert said in result.output


def test_series_without_a_figure_at_one_commit_do_not_count_as_compared() -> None:
    known, other = (
        a_series([1e6] * 20, project="trees", scenario="s", cell=cell) for cell in ("n=1", "n=2")
    )
    points = [*other.points]
    points[15] = replace(points[15], value=None, missing="it failed")
    histories = build_change_history((known, replace(other, points=HistoryPoints.of(points))))
    before, after = (point.commit.sha for point in (points[5], points[15]) if point.commit)

    page = commits_page(compare_commits("trees", before, after, histories), histories, now=NOW)

    assert plain(page.hero.support).startswith(
        "1 series compared, 1 without a clear difference; 1 more not compared, for a figure is"
        " missing. "
    )


def test_changes_that_were_not_committed_are_told_wherever_two_runs_are(tmp_path: Path) -> None:
    one, two = a_record(1, commit="a"), uncommitted(a_record(2, commit="a"))
    folder = kept(tmp_path, one, two)
    words = ["compare", "run01", "run02", "--records", str(folder)]

    page = compare_page(compare_runs(one, two), now=NOW)
    (hosted,) = host_studies([one, two])
    host = host_page(hosted, now=NOW)
    before, after = CliRunner().invoke(app, words).output.splitlines()[:2]
    told = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)

    said = "a" * 10 + "+dirty"
    assert [said in text for _, text, _ in page.runs] == [False, True]
    assert [said in commit for _, _, commit, *_ in host.runs] == [True, False]
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
    (one,) = (study(dirty, source, launches) for source in dirty.scenarios)

    told = CliRunner().invoke(app, ["regressions", "--records", str(folder)])
    pair = CliRunner().invoke(app, ["compare", "a" * 10, name[:13], "--records", str(folder)])

    assert [name in flag.title for flag in (*flags(one, 0, 0), *overview_flags([one], ()))] == [
        True,
        True,
    ]
    assert f"run02, measured uncommitted changes, {name}" in told.stderr
    before, after = pair.output.splitlines()[:2]
    assert (before.split()[1], after.split()[1]) == ("run01,", "run02,")
    # Alone, the hash never means what was measured with changes.
    with pytest.raises(InputError, match="No run, commit or file"):
        resolve_runs("aaaa", "run02", [StoredRun(file=tmp_path, run=dirty)], tmp_path)


def test_a_narrow_terminal_names_the_scenario_once_and_breaks_no_name() -> None:
    stream = io.StringIO()
    told = text_of_runs(compare_runs(a_record(1), a_record(2)))

    print_comparison(told, Console(file=stream, width=80), show_all=True)

    lines = stream.getvalue().splitlines()
    scenario = CELLS[0].scenario
    heading = next(at for at, line in enumerate(lines) if line.strip() == scenario)
    assert {line.split()[0] for line in lines[heading + 1 : heading + 3]} == {"none", "one-cpu"}


def test_one_cell_that_is_in_one_run_only_is_told_as_one() -> None:
    run, launches = a_record(2)
    first = tuple(one for one in launches if one.position == 0)

    assert (
        "1 cell is in one of the runs only."
        in text_of_runs(compare_runs(a_record(1), (run, first))).closing
    )
