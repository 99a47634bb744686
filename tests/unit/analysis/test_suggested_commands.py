"""Specifies the commands shown with results: each reproduces its own row and no other."""

import csv
import html
import io
import itertools
import shlex
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.analysis.launch_metrics import migrations, span_of
from corebound.analysis.scenario_result import analyse_scenario
from corebound.analysis.selection import latest_results
from corebound.analysis.suggested_commands import (
    CommandLine,
    asv_continuous_arguments,
    between_command,
    cells_command,
    compare_again_command,
    import_command,
    latest_command,
    launch_command,
    plan_command,
    point_command,
    scenario_command,
    series_command,
)
from corebound.analysis.wording import ends
from corebound.records.history import HistoryPoint, HistoryPoints, Series
from corebound.records.launch_record import Launch
from corebound.records.run_record import Commit, EnvironmentLock, Run
from corebound.scenario.cell import PROJECT, Cell
from corebound.scenario.matrix import expand
from corebound.scenario.select import select
from corebound.units import duration
from support.build import a_cell, a_launch, a_point, a_run, a_scenario, a_series
from support.known import known
from support.markup import parse_html
from support.report_sample import a_sample, pages_of, sample_imports, whole_site

SCENARIO = a_scenario(matrix={"binding": ["none", "one-cpu"], "threads": ["default", 2]})
RUN = replace(a_run(scenarios=(SCENARIO,), run_id="0a1b", seed=7), profile="quick")
CELLS = expand(SCENARIO, RUN.scenarios[0].path)


def words(command: CommandLine, option: str) -> list[str]:
    split = shlex.split(command.line)
    return [after for word, after in itertools.pairwise(split) if word == option]


def launch_of(cell: Cell, **changed: Any) -> Launch:
    return replace(a_launch(cell=cell), **changed)


def a_build(sha: str, *, dirty: bool = False) -> Run:
    """A run of a suite in a repository of its own, which built a commit of another project."""
    commit = Commit(sha=sha * 40, subject="s", committed_at="", dirty=dirty)
    lock = EnvironmentLock(name=PROJECT, sha256="", python="3.11", packages=(), commit=commit)
    return replace(
        RUN,
        commit=Commit(sha="5" * 40, subject="suite", committed_at="", dirty=False),
        environments=(lock,),
        argv=("corebound", "run", "scenarios", "--config", "../lib/asv.conf.json"),
    )


def test_runs_that_built_two_commits_are_compared_by_building_these_again_if_that_can_be() -> None:
    cell = replace(CELLS[1], environment=PROJECT)

    built, *others = (
        known(compare_again_command(a_build("a"), after, cell)).line
        for after in (a_build("b"), a_build("a"), a_build("b", dirty=True))
    )

    assert built == (
        "corebound compare-commits aaaaaaaaaa bbbbbbbbbb scenarios/a-scenario.yaml"
        f" --only {cell.key} --profile quick --config ../lib/asv.conf.json"
    )
    again = f"corebound run scenarios/a-scenario.yaml --only {cell.key} --seed 7 --profile quick"
    assert others == [f"{again} --config ../lib/asv.conf.json"] * 2


def test_a_launch_that_counts_has_a_reproduce_command() -> None:
    command = launch_command(RUN, launch_of(CELLS[1]))

    assert shlex.split(command.line) == [
        *("corebound", "reproduce", "0a1b", "--cell"),
        "a-scenario[binding=none,threads=2]",
    ]


@pytest.mark.parametrize(
    "changed", [{"status": "failed"}, {"status": "skipped"}, {"kind": "profile"}]
)
def test_a_launch_without_a_value_has_a_run_command_of_its_cell_only(
    changed: dict[str, object],
) -> None:
    for cell in CELLS:
        command = launch_command(RUN, launch_of(cell, **changed))

        only = words(command, "--only")
        assert [cell.key for cell in select(CELLS, only)] == [cell.key]
        assert (words(command, "--seed"), words(command, "--profile")) == (["7"], ["quick"])


def test_cells_of_built_commits_have_the_command_of_their_run() -> None:
    built = replace(RUN, argv=("corebound", "compare-commits", "v1", "v 2"))
    cell = replace(CELLS[0], commit="0123")

    command = cells_command(built, (cell,))

    assert command == CommandLine("corebound compare-commits v1 'v 2'")


@pytest.mark.parametrize(("only", "asked"), [((), 0), (("binding=none",), 2)])
def test_a_scenario_s_command_selects_what_its_run_selected(
    only: tuple[str, ...], asked: int
) -> None:
    run: Run = replace(RUN, only=only)

    command = scenario_command(run, run.scenarios[0], CELLS[:2])

    assert len(words(command, "--only")) == asked


def test_the_series_of_a_scenario_share_one_command_and_another_tool_has_one_per_line() -> None:
    own = a_series([1.0], cell="a=1", reproduce=("corebound", "run", "s.yaml", "--only", "a=1"))
    asv, two = (
        a_series([1.0], project="p", reproduce=("asv", "run", "--bench", bench))
        for bench in ("^a", "^b")
    )

    assert series_command((own, replace(own, cell="a=2"), own)) == CommandLine(
        "corebound run s.yaml --only a=1 --only a=2"
    )
    assert series_command((asv, two)) == CommandLine(
        "asv run --bench '^a'\nasv run --bench '^b'", reads_records=False
    )
    assert series_command((replace(asv, reproduce=()),)) is None


def test_an_asv_series_is_measured_at_the_commit_of_its_latest_value() -> None:
    commit = known(a_point().commit)
    point = a_point(1.0, day=1, commit=replace(commit, sha="a" * 40))
    points = HistoryPoints.of([point, a_point(None, day=2, commit=replace(commit, sha="b" * 40))])
    series = a_series([], project="p", reproduce=("asv", "run", "--bench", "^a"), points=points)
    own = a_series([1.0], cell="a=1", reproduce=("corebound", "run", "s.yaml", "--only", "a=1"))

    assert latest_command(series) == CommandLine(
        "asv run --bench '^a' 'aaaaaaaaaa^!'", reads_records=False
    )
    assert latest_command(own) == series_command((own,))


OWN = a_series([1.0], scenario="s", cell="a=1", reproduce=("corebound", "run", "s.yaml"))
AT_COMMIT = r"asv run --bench '^io\.read\b' '0000000000^!'"
# In an existing environment the commit is only recorded.
RECORDED = r"asv run --python=same --set-commit-hash 0000000000 --bench '^io\.read\b'"
EXISTING = "environment=existing-py_usr_bin_python"


def of_asv(cell: str) -> Series:
    reproduce = ("asv", "run", "--bench", r"^io\.read\b")
    return a_series([], project="trees", cell=cell, reproduce=reproduce)


@pytest.mark.parametrize(
    ("series", "value", "line"),
    [
        (OWN, 2.0, "corebound reproduce r7 --cell 's[a=1]'"),
        (OWN, None, "corebound run s.yaml"),
        (of_asv("default"), 2.0, AT_COMMIT),
        (of_asv("environment=virtualenv-py3.11"), 2.0, AT_COMMIT),
        (of_asv("n=environment=existing,environment=virtualenv-py3.11"), 2.0, AT_COMMIT),
        (of_asv(EXISTING), 2.0, RECORDED),
        (of_asv(f"n=1,{EXISTING}"), 2.0, RECORDED),
    ],
)
def test_a_point_is_reproduced_from_its_run_or_measured_at_its_commit(
    series: Series, value: float | None, line: str
) -> None:
    command = point_command(series, replace(a_point(value, missing="failed"), run="r7"))

    assert command == CommandLine(line, reads_records=series is OWN)


def test_two_commits_of_asv_are_measured_by_asv_continuous() -> None:
    series = a_series([], project="p", reproduce=("asv", "run", "--bench", "^a"))
    two = replace(series, reproduce=("asv", "run", "--bench", "^b"))
    good, bad = a_point(day=1), a_point(day=17)
    shas = f"{known(good.commit).sha[:10]} {known(bad.commit).sha[:10]}"

    assert between_command((series, two, series), good, bad) == CommandLine(
        f"asv continuous --bench '^a' {shas}\nasv continuous --bench '^b' {shas}",
        reads_records=False,
    )


@pytest.mark.parametrize(
    ("series", "good"),
    [
        (of_asv("default"), a_point(day=17)),
        (of_asv("default"), a_point(day=1, commit=None)),
        (of_asv(EXISTING), a_point(day=1)),
        (OWN, a_point(day=1)),
    ],
    ids=["one commit", "none", "an existing environment", "our own"],
)
def test_without_two_commits_that_can_alternate_the_series_is_measured(
    series: Series, good: HistoryPoint
) -> None:
    bad = a_point(day=17)

    assert between_command((series,), good, bad) == series_command((series,))
    if series is not OWN:
        assert asv_continuous_arguments(series, good.commit, bad.commit) == ()


@pytest.mark.parametrize("cells", [1, 3])
def test_a_change_of_asv_names_its_two_commits_everywhere(cells: int) -> None:
    values = [1e6 * (1.2 if day >= 40 else 1) + day % 7 * 1e3 for day in range(60)]
    url = "https://forge.example.org/c/"
    all_series = [
        a_series(
            values, project="p", cell=f"n={n}", reproduce=("asv", "run", "--bench", "^a"),
            commit_url=url,
        )
        for n in range(cells)
    ]  # fmt: skip

    made = pages_of([], series=all_series)

    (row, *_) = csv.DictReader(io.StringIO(made["data/changes.csv"]))
    good, bad = row["last_good_commit"], row["first_bad_commit"]
    again = f"asv continuous --bench '^a' {good[:10]} {bad[:10]}"
    assert row["command"] == again
    assert again in html.unescape(made["feed.xml"])
    for name in ("index.html", "history.html"):
        page = parse_html(made[name])
        assert again in {element.text for element in page.all("code")}
        names = {
            element.text for element in page.all("a") if element.attributes["href"] == url + bad
        }
        # The history page's heading of a commit has its name, its rows the range.
        assert f"{good[:10]}..{bad[:10]}" in names
        assert names <= {f"{good[:10]}..{bad[:10]}", bad[:10]}


def test_profiles_of_several_files_are_imported_from_their_folder() -> None:
    profile, _, several = sample_imports()

    assert import_command(profile) == CommandLine(
        "corebound import profile night.pt.trace.json.gz --name 'last night'"
    )
    # The shell puts the folder in: what the files are is told by its name too.
    assert import_command(several).line == "corebound import profile \"$PWD\" --name 'on the CPU'"


def test_a_cell_s_placement_has_a_plan_command() -> None:
    (studied,) = latest_results([a_sample()])

    assert plan_command(studied, studied.cells[0].cell) == CommandLine(
        "corebound plan scenarios/resnet50-inference.yaml --only binding=none,threads=default"
        " --profile quick",
        reads_records=True,
    )


def test_a_count_s_range_covers_all_launches_that_count_and_one_has_none() -> None:
    (studied,) = latest_results([a_sample()])
    pairs = [
        (
            span_of(cell, migrations),
            {
                number
                for launch in cell.launches
                if launch.status == "ok" and (number := migrations(launch)) is not None
            },
        )
        for cell in studied.cells
    ]
    run = a_run(scenarios=(a_scenario(matrix={}),))
    single = analyse_scenario(run, run.scenarios[0], (a_launch(cell=a_cell(axes=())),))

    assert any(span is not None for span, _ in pairs)
    for span, counted in pairs:
        # Around one value, or none, there is no range.
        assert span == ((min(counted), max(counted)) if len(counted) > 1 else None)
    assert span_of(single.cells[0], lambda _: 3) is None


def test_ends_share_their_unit_where_they_have_one() -> None:
    assert ends(1.2e6, 4.56e6, duration) == "1.20 … 4.56 ms"
    assert ends(8e5, 1.2e6, duration) == "800 µs … 1.20 ms"
    assert ends(3, 12, str) == "3 … 12"


def test_a_row_of_several_changed_cells_has_one_command_for_all() -> None:
    text = whole_site()["index.html"]
    (changed,) = [
        element
        for element in parse_html(text).all("section")
        if element.attributes["id"] == "changed"
    ]
    own = [
        element.text for element in changed.all("code") if element.text.startswith("corebound run")
    ]

    # Three cells got slower, three others faster.
    assert [line.count("--only") for line in own] == [3, 3]
