"""Where nothing could be found, that nothing was found says nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from corebound.analysis.change_history import ChangeHistory, build_change_history
from corebound.cli.app import app
from corebound.records import history_files
from corebound.records.history import HistoryPoints, Series
from corebound.report.pages.series_table import series_groups
from corebound.report.pages.whats_new import whats_new
from corebound.stats.history.regressions import least_figures, too_short
from support.build import a_point, a_series
from support.series import Observation, find_change_points

ENOUGH = least_figures()


def of(figures: int, **changes: object) -> Series:
    return a_series([1e6 + day % 3 for day in range(figures)], **changes)


def known(*series: Series) -> ChangeHistory:
    return build_change_history(series)


def said_of(*series: Series) -> tuple[str, str]:
    """The verdict of the night, and what it rests on."""
    tonight = whats_new(known(*series), ())
    assert tonight is not None
    verdict, support = (
        "".join(piece.text for piece in told) for told in (tonight.verdict, tonight.support)
    )
    return verdict, support


def test_so_many_figures_are_the_fewest_in_which_any_step_is_found() -> None:
    noise = random.Random(3)

    def found(nights: int) -> bool:
        """Whether steps of any size at any place are, each in so much noise."""
        return any(
            find_change_points(
                [
                    Observation(
                        figure=(1 if night < at else ratio) * noise.lognormvariate(0, spread)
                    )
                    for night in range(nights)
                ]
            )
            for at in range(1, nights)
            for ratio in (0.01, 1.5, 100.0)
            for spread in (1e-6, 1e-3, 1e-2)
        )

    assert not any(found(nights) for nights in range(2, ENOUGH))
    assert found(ENOUGH)


def test_only_figures_under_the_latest_circumstances_count() -> None:
    whole = of(2 * ENOUGH)
    late = 2 * ENOUGH - 3
    moved = replace(
        whole,
        points=HistoryPoints.of(
            point if day < late else replace(point, environment_key=(("kernel", "6.2"),))
            for day, point in enumerate(whole.points)
        ),
    )

    assert too_short([whole, moved]) == (moved,)


def test_nights_without_a_figure_tell_nothing_and_a_series_of_them_failed() -> None:
    gaps = a_series([1e6, None] * (ENOUGH - 1))
    failed = a_series([None] * 3)

    assert too_short([gaps, failed]) == (gaps,)


def test_the_verdict_of_the_night_says_how_many_series_cannot_tell() -> None:
    verdict, support = said_of(of(ENOUGH), of(3, cell="n=2"), of(1, project="p", cell="n=3"))

    assert verdict == "Nothing got slower, nothing faster in 1 of 3 series."
    assert f"2 of 3 series are too short to tell: a change takes {ENOUGH} figures" in support


def test_where_most_series_can_tell_the_verdict_is_of_all() -> None:
    verdict, support = said_of(of(ENOUGH), of(ENOUGH, cell="n=2"), of(3, cell="n=3"))

    assert verdict == "Nothing got slower, nothing faster."
    assert "1 of 3 series is too short to tell" in support


def test_where_no_series_can_tell_the_verdict_is_that_it_is_too_early() -> None:
    verdict, support = said_of(of(7), of(3, cell="n=2"))

    assert verdict == "Too early to tell what changed."
    assert "All 2 series are too short to tell" in support


def test_where_every_series_can_tell_nothing_is_said_of_it() -> None:
    assert "too short" not in said_of(of(ENOUGH))[1]


def test_a_table_says_that_a_series_is_too_short_instead_of_unchanged() -> None:
    series, long = of(3), of(2 * ENOUGH, scenario="longer")
    history = known(series, long)

    rows = [row for group in series_groups([series, long], history) for row in group.rows]

    assert {row.points: (row.change, row.unchanged) for row in rows} == {
        "3 points": (None, "too short to tell"),
        f"{2 * ENOUGH} points": (None, "none"),
    }


def test_what_has_ended_need_not_tell() -> None:
    series = of(4 * ENOUGH + 60, project="p", cell="n=1")
    ended = replace(series, cell="n=2", points=HistoryPoints.of([a_point(1e6)]))

    assert known(series, ended).ended == {ended.id}
    assert "too short" not in said_of(series, ended)[1]


def test_the_command_says_the_same_in_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    all_series = [of(ENOUGH), of(3, cell="n=2")]
    history_files.keep(
        "p", [replace(series, project="p") for series in all_series], Path("reports/records")
    )
    by_name = {
        form: CliRunner().invoke(app, ["regressions", "--format", form]).stdout
        for form in ("text", "md", "json")
    }

    text = f"1 of 2 series is too short to tell: a change takes {ENOUGH} figures"
    assert f"No new regression, in 2 series. {text}" in by_name["text"]
    assert text in by_name["md"]
    assert json.loads(by_name["json"])["too_short"] == 1
