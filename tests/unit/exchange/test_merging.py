"""What was imported before and now, as one history: however it is put together."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.exchange import history_import
from corebound.exchange.asv.series import complete_environments
from corebound.exchange.history_import import merge
from corebound.records.history import INCOMPARABLE, HistoryPoints, Series, incomparable
from support.build import a_point, a_series


def points_of(days: list[int], versions: list[str]) -> HistoryPoints:
    """One each day, with all that a point may have and may lack."""
    return HistoryPoints.of(
        replace(
            a_point(None if day % 3 == 0 else 1e6 + day, day=day),
            bounds=(1e6, 2e6) if day % 3 == 1 else None,
            launches=(1e6, 1.5e6) if day % 5 == 1 else (),
            missing="it failed" if day % 3 == 0 else None,
            environment_key=(("cpu", "a"), ("benchmark", version)),
        )
        for day, version in zip(days, versions, strict=False)
    )


@given(
    before=st.sets(st.integers(0, 20), min_size=1),
    now=st.sets(st.integers(0, 24), min_size=1),
    versions=st.lists(st.sampled_from(["", "v1", "v2"]), min_size=40, max_size=40),
)
def test_points_that_go_at_the_end_are_joined_as_any_others(
    before: set[int], now: set[int], versions: list[str]
) -> None:
    # As it was kept: each point with the version of the next that tells one.
    old = a_series([], points=complete_environments(points_of(sorted(before), versions)))
    new = a_series([], points=points_of(sorted(now), versions[20:]), title="a new name")

    (found,) = merge([old], [new])

    assert found == history_import._merge_pair(old, new)


def test_a_series_without_news_stays_beside_one_that_has_some() -> None:
    one, other = a_series([1e6]), a_series([2e6], scenario="other")
    more = replace(one, points=HistoryPoints.of([a_point(3e6, day=1)]))

    found = merge([one, other], [more])

    assert found == (replace(one, points=HistoryPoints.of([*one.points, *more.points])), other)


def test_a_history_that_nothing_is_added_to_is_not_written_again(tmp_path: Path) -> None:
    series: tuple[Series, ...] = (a_series([1e6, None], project="trees"),)
    file = history_import.keep("trees", series, tmp_path).file
    before = file.stat()

    now = history_import.keep("trees", (), tmp_path)

    assert (now.series, now.points, now.values, now.added) == (1, 2, 1, 0)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_series_of_which_several_files_tell_has_the_points_of_all() -> None:
    whole = a_series([1e6, 2e6, 3e6])
    parts = [replace(whole, points=whole.points[at : at + 1]) for at in (2, 0, 1)]

    first = merge((), parts)

    assert first == (whole,)
    assert merge(first, parts) == (whole,)


def test_why_points_have_no_figure_is_counted_by_kind_and_told_whole(tmp_path: Path) -> None:
    why = (incomparable("-2.88 %"), incomparable("0 %"), "failed: OSError: no space")
    points = HistoryPoints.of(
        replace(a_point(None, day=day), missing=reason) for day, reason in enumerate(why)
    )

    told = history_import.keep("trees", [a_series([], points=points, project="trees")], tmp_path)

    assert told.reasons == ((INCOMPARABLE, 2), ("failed: OSError: no space", 1))
