"""Specifies what a run adds to a history, and which series are retired."""

import itertools
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from corebound.records import codec, history_files
from corebound.records.history import HistoryPoints, Series
from corebound.records.launch_record import Launch
from corebound.records.run_record import Commit, EnvironmentLock, Run
from corebound.scenario.matrix import expand
from corebound.scenario.select import select
from corebound.stats.history.incremental import SegmentCache, SegmentResult
from corebound.stats.history.regressions import analyse
from corebound.stats.history.series import joined, retired_series, series_of_run
from support.build import a_launch, a_machine, a_point, a_run, a_scenario, a_series, a_worker

SCENARIO = a_scenario(name="matmul", measure={"iterations": 100})
CELLS = expand(SCENARIO, "matmul.yaml", None)


def a_night(
    day: int, *, launches: tuple[Launch, ...] | None = None
) -> tuple[Run, tuple[Launch, ...]]:
    run = a_run(
        scenarios=(SCENARIO,), run_id=f"run{day:02}", started_at=f"2026-03-{day:02}T02:00:00Z"
    )
    made = launches or tuple(
        a_launch(cell=cell, block=block, position=position)
        for block in range(3)
        for position, cell in enumerate(CELLS)
    )
    return run, made


def test_each_launched_cell_has_one_point_per_run() -> None:
    series = series_of_run(*a_night(1))

    assert [one.cell for one in series] == sorted(cell.key for cell in CELLS)
    assert all(len(one.points) == 1 and len(one.points[0].launches) == 3 for one in series)
    assert all(one.points[0].bounds is not None for one in series)


def test_a_commit_that_a_comparison_could_not_measure_has_no_point() -> None:
    compared = a_scenario(name="matmul.commits", measure={"iterations": 100})
    cells = expand(compared, "matmul.yaml", None)
    for status in ("invalid", "failed", "timed-out"):
        launches = [
            a_launch(cell=cells[0]),
            a_launch(cell=cells[1], position=1, status=status, reason="why", workers=()),
        ]

        found = series_of_run(a_run(scenarios=(compared,)), launches)

        assert [series.cell for series in found] == [cells[0].key]


def test_a_point_without_an_ok_launch_has_the_reason_of_a_failed_one_and_no_value() -> None:
    refused = a_launch(cell=CELLS[0], status="invalid", reason="another program", workers=())
    failed = a_launch(cell=CELLS[0], block=1, status="failed", reason="no space", workers=())
    skipped = replace(a_launch(cell=CELLS[0]), status="skipped", reason="too many CPUs")

    for launches in ((failed,), (refused, failed)):
        (series,) = series_of_run(*a_night(1, launches=launches))
        assert (series.points[0].value, series.points[0].missing) == (None, "failed: no space")
    # A cell that the host cannot hold has no history.
    assert series_of_run(*a_night(1, launches=(skipped,))) == ()


def test_a_run_with_uncommitted_changes_adds_no_point() -> None:
    run, launches = a_night(1)
    clean = Commit(sha="b" * 40, subject="s", committed_at="2026-03-01T00:00:00Z", dirty=False)
    changed = replace(clean, dirty=True, tree="d" * 40)
    name = CELLS[0].environment
    held = {
        commit.name: EnvironmentLock(
            name=name, sha256="", python="3.11.2", packages=(), commit=commit
        )
        for commit in (clean, changed)
    }

    found = {
        commit: len(series_of_run(replace(run, environments=(lock,)), launches))
        for commit, lock in held.items()
    }

    assert found == {"bbbbbbbbbb": len(CELLS), "bbbbbbbbbb+dirty.ddddddd": 0}


def test_a_point_is_of_the_commit_that_was_built_not_of_the_suites_own() -> None:
    run, launches = a_night(1)
    suite, built = (
        Commit(sha=sha * 40, subject="s", committed_at="2026-03-01T00:00:00Z", dirty=False)
        for sha in "ab"
    )
    lock = EnvironmentLock(
        name=CELLS[0].environment, sha256="", python="3.11.2", packages=(), commit=built
    )
    argv = ("corebound", "run", "scenarios", "--config=../lib/asv.conf.json")
    run = replace(run, commit=suite, environments=(lock,), argv=argv)

    series, *_ = series_of_run(run, launches)

    assert series.points[0].commit == built
    assert series.reproduce[3:5] == ("--config", "../lib/asv.conf.json")


def anchored_night(day: int, *, numpy: str = "numpy==2", argv: tuple[str, ...] = ()) -> Series:
    """A night of an anchor, a, and of HEAD, b, which takes twice as long."""
    commits = [
        Commit(sha=sha * 40, subject="s", committed_at="2026-03-01T00:00:00Z", dirty=False)
        for sha in "ab"
    ]
    locks = tuple(
        EnvironmentLock(
            name=commit.name, sha256="", python="3.11.2", packages=packages, commit=commit
        )
        for commit, packages in zip(commits, ((numpy,), ("numpy==2.0",)), strict=True)
    )
    launches = tuple(
        a_launch(
            workers=(a_worker(wall_ns=(5_000 * (at + 1),) * 30),),
            cell=replace(
                CELLS[0],
                axes=(("commit", commit.name), *CELLS[0].axes),
                commit=commit.name,
                environment=commit.name,
            ),
        )
        for at, commit in enumerate(commits)
    )
    run, _ = a_night(day, launches=launches)
    anchored = replace(run, anchors=tuple(commits[:1]), environments=locks, argv=argv)
    (series,) = series_of_run(anchored, launches)
    return series


def test_an_anchor_built_with_other_packages_begins_a_segment() -> None:
    nights = [anchored_night(day, numpy=f"numpy=={2 if day < 3 else 1}") for day in (1, 2, 3)]

    (series,) = joined(nights)

    assert series.points.environment_changes == (2,)


def test_a_ratio_to_an_anchor_keeps_both_values() -> None:
    (point,) = anchored_night(1).points

    assert point.value == 2
    assert point.sides == pytest.approx((10_000, 5_000))
    (kept,) = history_files.unpack(history_files.pack([anchored_night(1)]))
    assert [*kept] == [point]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (("--anchor", "v1.2"), "v1.2 (aaaaaaaaaa)"),
        (("--anchor=release/1",), "release/1 (aaaaaaaaaa)"),
        (("--anchor", "a" * 40), "aaaaaaaaaa"),
        # The next night, these are other commits.
        (("--anchor", "HEAD~3"), "aaaaaaaaaa"),
        # One of them is HEAD, and it is unknown which.
        (("--anchor", "v1.3", "--anchor", "v1.2"), "aaaaaaaaaa"),
    ],
)
def test_an_anchor_has_the_name_that_the_user_gave_beside_its_hash(
    given: tuple[str, ...], name: str
) -> None:
    series = anchored_night(1, argv=("run", "scenarios", *given))

    assert dict(series.points.environment_keys[0])["anchor"] == name
    assert name in series.host_name


def test_runs_join_to_one_series_per_cell_oldest_first() -> None:
    nights = [series_of_run(*a_night(day)) for day in (3, 1, 2)]

    series = joined(one for night in nights for one in night)

    assert len(series) == len(CELLS)
    for one in series:
        assert [point.run for point in one.points] == ["run01", "run02", "run03"]


def test_points_in_a_unit_that_the_metric_no_longer_has_say_so_and_have_no_value() -> None:
    days = [a_point(1e3, day=1), a_point(2.0, day=2)]
    before, now = (
        a_series([], unit=unit, points=HistoryPoints.of([point]))
        for unit, point in zip(("kB", "MB"), days, strict=True)
    )

    (series,) = joined([before, now])

    assert series.unit == "MB"
    assert [point.value for point in series.points] == [None, 2.0]
    assert "kB" in (series.points[0].missing or "")


def test_another_kernel_is_an_environment_change_but_another_commit_is_not() -> None:
    run, launches = a_night(1)
    newer = replace(run, host=replace(a_machine(), kernel="7.0"))
    committed = Commit(
        sha="b" * 40, subject="new", committed_at="2026-03-01T00:00:00Z", dirty=False
    )

    one, other, third = (
        series_of_run(each, launches)[0].points[0].environment_key
        for each in (run, newer, replace(run, commit=committed))
    )

    assert one != other
    assert one == third


def test_a_profile_enters_the_environment_key_by_what_it_measures() -> None:
    run, launches = a_night(1)

    whole, quick = (
        dict(series_of_run(each, launches)[0].points[0].environment_key)
        for each in (run, replace(run, profile="quick"))
    )

    assert (whole["iterations"], whole["warm-up"]) == ("100", "auto")
    assert (quick.pop("iterations"), quick) == ("20", {k: whole[k] for k in quick})


def test_another_content_of_a_model_file_begins_a_new_segment() -> None:
    def night(day: int, model: str) -> tuple[Series, ...]:
        worker = replace(a_worker(), versions={"torch": "2.13.0", "model": model})
        slower = 1.5 if day > 8 else 1.0
        worker = replace(worker, wall_ns=tuple(round(slower * ns) for ns in worker.wall_ns))
        launches = tuple(
            a_launch(cell=CELLS[0], block=block, workers=(worker,)) for block in (0, 1)
        )
        return series_of_run(*a_night(day, launches=launches))

    names = {day: f"own.gguf {'aaaa' if day <= 8 else 'bbbb'}" for day in range(1, 17)}
    (changed,) = joined([one for day, name in names.items() for one in night(day, name)])
    (same,) = joined([one for day in names for one in night(day, "own.gguf aaaa")])

    assert {dict(point.environment_key)["model file"] for point in changed.points} == {
        "own.gguf aaaa",
        "own.gguf bbbb",
    }
    assert [analyse([one]).changes != () for one in (changed, same)] == [False, True]


def test_a_step_up_is_a_regression_with_one_id_as_points_are_added() -> None:
    noise = random.Random(1)
    figures = [100 * (1.1 if night >= 30 else 1) * noise.gauss(1, 0.01) for night in range(60)]

    found = analyse([a_series(figures), a_series(figures[::-1], cell="binding=node")]).changes
    (earlier,) = analyse([a_series(figures[:50])]).changes

    assert {(one.series.cell, one.is_regression, one.clear) for one in found} == {
        ("default", True, True),
        ("binding=node", False, True),
    }
    assert all(abs(one.change_point.at - 30) <= 1 for one in found)
    assert earlier.id in {one.id for one in found}


def test_stored_histories_read_back_unchanged_and_invalid_ones_are_skipped(tmp_path: Path) -> None:
    series = (a_series([1.0, 2.0], project="sunpy"),)
    for _ in range(2):
        history_files.keep("sunpy", series, tmp_path)
    assert history_files.read_all(tmp_path) == (series, ())

    broken = tmp_path / "histories" / "0.json"
    broken.write_text("{}")

    found, faults = history_files.read_all(tmp_path)
    assert (found, [fault.file for fault in faults]) == (series, [str(broken)])


def test_the_command_of_a_cell_selects_only_that_cell() -> None:
    # Several `--only` are alternatives: two axes apart would name many cells.
    scenario = a_scenario(matrix={"binding": ["none", "one-cpu"], "threads": [1, 2]})
    cells = expand(scenario, "s.yaml")
    run = a_run(scenarios=(scenario,))

    for one in series_of_run(run, [a_launch(cell=cell) for cell in cells]):
        only = [word for before, word in itertools.pairwise(one.reproduce) if before == "--only"]
        assert [cell.key for cell in select(cells, only)] == [one.cell]


@pytest.mark.parametrize("importance", ["primary", "secondary"])
def test_a_series_has_the_importance_of_its_scenario(importance: str) -> None:
    scenario = a_scenario(importance=importance)
    (cell, *_) = expand(scenario, "a.yaml")

    (series,) = series_of_run(a_run(scenarios=(scenario,)), [a_launch(cell=cell)])

    assert series.importance == importance


def test_points_share_common_values() -> None:
    once = b"".join(history_files.encode([a_series([1e6] * 100)]))
    both = [a_series([1e6] * 100), a_series([1e6] * 100, cell="other")]
    twice = b"".join(history_files.encode(both))

    assert len(twice) < 1.5 * len(once)


def test_columns_of_unequal_length_and_a_truncated_history_are_rejected() -> None:
    first, line, _ = history_files.encode([a_series([1e6]), a_series([1e6], cell="other")])
    (of_one, _), told = history_files.encode([a_series([1e6])]), msgspec.json.decode(line)

    for name, value in (("moments", 7), ("figures", ""), ("figures", "AAAA"), ("missing", "AAAA")):
        damaged = msgspec.json.encode(told | {name: value})
        with pytest.raises(codec.UnreadableError):
            history_files.decode([of_one, damaged])
    with pytest.raises(codec.UnreadableError, match="truncated: 1 of 2 series"):
        history_files.decode([first, line])


def test_a_cached_segment_is_not_analysed_again_and_a_further_point_makes_another() -> None:
    figures = [1e6 * (1.1 if night > 30 else 1.0) * (1 + night % 3 / 500) for night in range(60)]
    memory, longer = SegmentCache(), SegmentCache()
    found = analyse([a_series(figures)], cache=memory).changes
    analyse([a_series([*figures, 1e6])], cache=longer)

    (key,) = memory.asked
    cached = SegmentCache({key: SegmentResult(steps=(), places=(), rho=0.0)})
    again = analyse([a_series(figures)], cache=cached).changes

    assert (len(found), again) == (1, ())
    assert not memory.asked.keys() & longer.asked.keys()


def a_series_on(host: str, days: Iterable[int], **changes: Any) -> Series:
    points = HistoryPoints.of(a_point(day=day) for day in days)
    return a_series([], host=host, host_name=host, points=points, **{"project": "p", **changes})


def hosts_of(*suite: Series) -> set[str]:
    found = retired_series(suite)
    return {one.host for one in suite if one.id in found}


def test_a_series_is_retired_after_thirty_later_points_of_its_host() -> None:
    old = a_series_on("a", range(10), cell="old")

    assert retired_series([old, a_series_on("a", range(39))]) == frozenset()
    assert retired_series([old, a_series_on("a", range(41))]) == {old.id}


@pytest.mark.parametrize(
    ("days", "nights", "project", "retired"),
    [
        # Quiet for unusually long while others continue.
        (range(20), 60, "p", {"quiet"}),
        (range(20), 45, "p", set()),
        # Irregular as it always was.
        (range(0, 120, 30), 140, "p", set()),
        (range(0, 120, 30), 160, "p", {"quiet"}),
        # Machines of other projects do not matter.
        (range(20), 60, "q", set()),
    ],
)
def test_a_machine_quiet_for_unusually_long_is_retired_if_others_continue(
    days: range, nights: int, project: str, retired: set[str]
) -> None:
    others = a_series_on("nightly", range(nights), project=project)

    assert hosts_of(a_series_on("quiet", days), others) == retired


@pytest.mark.parametrize("moment", ["tonight", "2026-13-45"])
def test_an_invalid_date_retires_nothing(moment: str) -> None:
    points = HistoryPoints.of(a_point(at=moment) for _ in range(2))
    odd = a_series([], host="odd", host_name="odd", points=points, project="p")

    assert retired_series([odd, a_series_on("new", range(60))]) == frozenset()
