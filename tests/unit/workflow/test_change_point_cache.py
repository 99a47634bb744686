"""Change points are cached between commands."""

import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corebound.analysis.change_history import build_change_history
from corebound.cli.app import app
from corebound.records import history_files
from corebound.records.history import Series
from corebound.stats.history import incremental
from corebound.stats.history.change_point_search import ProposedCuts
from corebound.workflow.change_point_cache import cached_change_points
from support.build import a_series


def imported(project: str) -> Series:
    noise = random.Random(project)
    course = [1e6 * (1.2 if day >= 45 else 1.0) * noise.gauss(1, 0.005) for day in range(60)]
    return a_series(course, project=project, scenario=project, title=project)


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[incremental.Segment]:
    """What was looked at anew."""
    found: list[incremental.Segment] = []
    whole = incremental._analyse_whole

    def noted(
        one: incremental.Segment, *proposed: ProposedCuts | None
    ) -> incremental.SegmentResult:
        found.append(one)
        return whole(one, *proposed)

    monkeypatch.setattr(incremental, "_analyse_whole", noted)
    return found


def look(records: Path, *projects: str, of_all: bool) -> None:
    with cached_change_points(records, all_series=of_all) as memory:
        build_change_history([imported(name) for name in projects], cache=memory)


def test_analysing_some_series_keeps_the_cache_of_the_others(
    tmp_path: Path, searched: list[incremental.Segment]
) -> None:
    look(tmp_path, "one", "two", of_all=True)
    look(tmp_path, "one", "three", of_all=False)
    assert len(searched) == 3

    look(tmp_path, "one", "two", "three", of_all=False)
    assert len(searched) == 3


def test_analysing_all_series_drops_unused_entries(
    tmp_path: Path, searched: list[incremental.Segment]
) -> None:
    look(tmp_path, "one", "two", of_all=True)
    look(tmp_path, "two", of_all=True)
    look(tmp_path, "one", of_all=False)

    assert len(searched) == 3


def test_an_interrupted_analysis_keeps_its_results(
    tmp_path: Path, searched: list[incremental.Segment]
) -> None:
    def interrupted() -> None:
        with cached_change_points(tmp_path, all_series=True) as memory:
            build_change_history([imported("two")], cache=memory)
            raise KeyboardInterrupt

    look(tmp_path, "one", of_all=True)
    with pytest.raises(KeyboardInterrupt):
        interrupted()

    look(tmp_path, "one", "two", of_all=False)
    assert len(searched) == 2


def test_compare_report_and_regressions_share_the_cache(
    tmp_path: Path, searched: list[incremental.Segment]
) -> None:
    series = imported("trees")
    history_files.keep("trees", [series], tmp_path)
    before, after = (point.commit for point in (series.points[30], series.points[55]))
    assert before is not None
    assert after is not None
    words = ["compare", before.sha, after.sha]

    for asked, code in (
        (words, 0),
        (words, 0),
        (["report", "--out", f"{tmp_path}/site"], 0),
        (["regressions"], 1),  # there is one
    ):
        result = CliRunner().invoke(app, [*asked, "--records", str(tmp_path)])

        assert result.exit_code == code, result.output
        assert len(searched) == 1
