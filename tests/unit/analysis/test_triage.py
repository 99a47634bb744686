"""Changes are grouped by the commits they may come from, missing values by their reason."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.analysis.change_history import build_change_history
from corebound.analysis.suggested_commands import triage_commands
from corebound.analysis.triage import (
    CommitEntry,
    change_factor,
    group_failures,
    group_overlapping,
    impact_extent,
    impact_size,
    triage,
)
from corebound.records.decisions import Decision, State
from corebound.records.history import HistoryPoints, Series
from corebound.stats.history.regressions import Change, failing
from support.build import a_point, a_series
from support.known import known
from support.series import a_stepped_series
from support.texts import in_order


def entries_of(*series: Series, decisions: Sequence[Decision] = ()) -> tuple[CommitEntry, ...]:
    history = build_change_history(series, decisions=decisions)
    return triage(history.assessed.values())


def decided(state: State, change: Change) -> Decision:
    return Decision(
        id=change.id, state=state, because="why not", at="2026-12-01T00:00:00Z",
        location=change.location,
    )  # fmt: skip


def test_what_one_commit_changed_is_one_entry_about_its_regressions() -> None:
    cells = [
        a_stepped_series(f"b{number % 4}", 1.1 + number / 100, cell=f"n={number}")
        for number in range(12)
    ]

    (entry,) = entries_of(*cells, a_stepped_series("unchanged", 1.0))
    (both,) = entries_of(a_stepped_series("worse", 1.1), a_stepped_series("better", 0.7))

    assert (len(entry.regressions.benchmarks), entry.regressions.series) == (4, 12)
    assert (entry.improvements.benchmarks, entry.status) == ((), "new")
    assert both.is_regression
    assert [each.largest.series.scenario for each in both.other.benchmarks] == ["better"]


def test_an_entry_has_the_geometric_mean_of_its_series_and_the_largest() -> None:
    (entry,) = entries_of(a_stepped_series("a", 1.1), a_stepped_series("b", 1.4))

    # sqrt(1.1 x 1.4) = 1.241
    assert entry.regressions.geometric_mean == pytest.approx(math.sqrt(1.1 * 1.4), rel=0.01)
    assert change_factor(entry.regressions.benchmarks[0].largest) == pytest.approx(1.4, rel=0.01)
    assert impact_extent(entry.leading) == "2 series of 2 benchmarks"
    assert in_order(impact_size(entry.leading), "1.24× slower", "geometric mean", "1.40×")


@pytest.mark.parametrize(
    ("series", "size"),
    [
        (a_stepped_series("a", 0.5), "2.00× faster"),
        (a_stepped_series("a", 1.3, unit="bytes"), "1.30× worse"),
        (a_stepped_series("a", 1.3, importance="secondary"), "1.30× slower"),
    ],
)
def test_a_size_is_a_ratio_above_1_in_the_words_of_its_unit(series: Series, size: str) -> None:
    (entry,) = entries_of(series)

    assert impact_size(entry.leading) == size
    assert entry.is_regression == (size != "2.00× faster")
    assert entry.is_secondary == (series.importance == "secondary")
    secondary = ["secondary"] * entry.is_secondary
    assert in_order(impact_extent(entry.leading), "1 series", "1 benchmark", *secondary)


def test_different_commits_are_different_entries_the_latest_first() -> None:
    all_series = [a_stepped_series(f"{name}{at}", 1.2, at=at) for at in (30, 45) for name in "ab"]

    late, early = entries_of(*all_series)

    subjects = [known(entry.first_bad.commit).subject for entry in (late, early)]
    assert subjects == ["change 45", "change 30"]
    # The builder's commits all begin with ten zeros.
    assert {late.id, early.id} == {"0000000000", "0000000000-2"}


def test_machines_of_a_project_share_its_commits() -> None:
    (entry,) = entries_of(
        a_stepped_series("a", 1.2, host="h1", host_name="one"),
        a_stepped_series("a", 1.3, host="h2", host_name="two"),
    )

    assert entry.hosts == ("one", "two")
    assert len(entry.regressions.benchmarks) == 1


def shifted(series: Series, hours: int) -> Series:
    """The same commits, measured so many hours later in the night."""
    points = (
        replace(point, at=point.at.replace("T02", f"T{2 + hours:02}")) for point in series.points
    )
    return replace(series, points=HistoryPoints.of(points))


def test_hosts_of_our_own_that_measure_the_same_commits_agree() -> None:
    one = a_stepped_series("a", 1.2, project=None)
    two = a_stepped_series("a", 1.2, project=None, host="h2", host_name="two")

    (entry,) = entries_of(one, shifted(two, 5))

    assert entry.hosts == ("host", "two")


def without_commits(series: Series) -> Series:
    points = (replace(point, commit=None) for point in series.points)
    return replace(series, points=HistoryPoints.of(points))


def test_without_commits_an_entry_is_named_by_its_date_and_hosts_stay_apart() -> None:
    one = without_commits(a_stepped_series("a", 1.2, project=None))
    two = without_commits(a_stepped_series("a", 1.2, project=None, host="h2", host_name="two"))

    entries = entries_of(one, two)

    assert [entry.is_of_commits for entry in entries] == [False, False]
    assert sorted(entry.id for entry in entries) == ["2026-02-15", "2026-02-15-2"]


@pytest.mark.parametrize(
    ("state", "status"), [("accepted", "acknowledged"), ("fixed", "fixed"), ("open", "new")]
)
def test_the_status_is_what_was_decided_of_all_its_changes(state: State, status: str) -> None:
    all_series = [a_stepped_series(name, 1.2, nights=50) for name in "ab"]
    decisions = [decided(state, change) for change in build_change_history(all_series).changes]

    (entry,) = entries_of(*all_series, decisions=decisions)
    (part,) = entries_of(*all_series, decisions=decisions[:1])

    assert (entry.status, part.status) == (status, "new")


@pytest.mark.parametrize(("ratio", "status"), [(1.2, "open"), (0.8, "kept")])
def test_what_is_no_longer_new_is_open_or_kept(ratio: float, status: str) -> None:
    (entry,) = entries_of(a_stepped_series("a", ratio, at=20, nights=90))

    assert entry.status == status


@pytest.mark.parametrize(
    ("ratio", "statuses"), [(1.2, ("new", "fixed")), (0.8, ("new", "reverted"))]
)
def test_what_a_later_commit_took_back_is_fixed_or_reverted(
    ratio: float, statuses: tuple[str, str]
) -> None:
    there = a_stepped_series("a", ratio, at=30)
    values = [
        value / (ratio if day >= 45 else 1.0) for day, value in enumerate(there.points.values)
    ]

    late, early = entries_of(a_series(values, scenario="a", project="p"))

    assert (late.status, early.status) == statuses
    assert (late.is_regression, early.is_regression) == (ratio < 1, ratio > 1)


def test_secondary_benchmarks_come_after_primary_ones_and_are_not_counted() -> None:
    (entry,) = entries_of(
        a_stepped_series("small", 1.1), a_stepped_series("large", 3.0, importance="secondary")
    )
    (better,) = entries_of(
        a_stepped_series("worse", 2.0, importance="secondary"), a_stepped_series("better", 0.8)
    )

    assert [each.largest.series.scenario for each in entry.leading.benchmarks] == ["small", "large"]
    assert impact_size(entry.leading) == "1.10× slower"
    assert in_order(impact_extent(entry.leading), "1 series", "1 benchmark", "1 secondary")
    assert (better.is_regression, better.is_secondary) == (False, False)


def test_a_suspicion_is_no_entry() -> None:
    assert entries_of(a_stepped_series("a", 1.2, at=45, nights=47)) == ()


@given(ranges=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 15)), min_size=1, max_size=12))
def test_changes_of_a_group_share_a_moment_and_no_change_is_lost(
    ranges: list[tuple[int, int]],
) -> None:
    series = a_stepped_series("a", 1.2)
    (change,) = build_change_history([series]).changes
    changes = [
        replace(
            change,
            change_point=replace(change.change_point, last_good=first, first_bad=first + length),
        )
        for first, length in ranges
    ]

    groups = group_overlapping(changes)

    assert sum(map(len, groups)) == len(changes)
    for group in groups:
        begin = max(each.change_point.last_good for each in group)
        end = min(each.change_point.first_bad for each in group)
        assert begin < end


def failed_since(day: int, reason: str, **changes: str) -> Series:
    points = [
        a_point(None if at >= day else 1e6, day=at, missing=reason if at >= day else None)
        for at in range(20)
    ]
    return a_series([], points=HistoryPoints.of(points), **changes)


@pytest.mark.parametrize("importance", ["primary", "secondary"])
def test_series_that_fail_for_one_reason_are_one_group_the_largest_first(importance: str) -> None:
    groups = group_failures(
        failing(
            [
                failed_since(15, "timed out", scenario="a", importance=importance),
                failed_since(18, "timed out", scenario="b", importance=importance),
                failed_since(10, "no memory", scenario="c"),
            ]
        )
    )

    # Those of secondary benchmarks come last.
    first, last = groups if importance == "primary" else groups[::-1]
    assert (first.reason, len(first.failing)) == ("timed out", 2)
    assert (last.reason, len(last.failing)) == ("no memory", 1)
    assert first.since.at == "2026-01-16T02:00:00Z"


def lines_of(entry: CommitEntry, *, built: bool = False) -> dict[str, str]:
    ids = {change.change.series.id for change in entry.changes} if built else set()
    return {name: command.line for name, command in triage_commands(entry, ids).items()}


def own(scenario: str) -> Series:
    """A scenario with several cells in the repository under test."""
    series = a_stepped_series(scenario, 1.2, project=None, cell="threads=2")
    points = [
        replace(point, commit=replace(point.commit, sha=f"{day:02}" + "a" * 38))
        for day, point in enumerate(series.points)
        if point.commit is not None
    ]
    words = ("corebound", "run", f"scenarios/{scenario}.yaml", "--only", "threads=2")
    return replace(series, points=HistoryPoints.of(points), reproduce=words)


@pytest.mark.parametrize("options", [(), ("--config", "../lib/asv.conf.json")])
def test_commits_that_are_built_are_compared_and_bisected_by_measuring(
    options: tuple[str, ...],
) -> None:
    series = own("sum")
    (entry,) = entries_of(replace(series, reproduce=(*series.reproduce, *options)))

    commits = known(entry.last_good.commit).name, known(entry.first_bad.commit).name
    ends, file = " ".join(commits), "scenarios/sum.yaml"
    # The project of a suite elsewhere is named.
    project = " ".join(("", *options))
    assert lines_of(entry, built=True) == {
        "Compare": f"corebound compare-commits {ends} {file}{project} --only threads=2",
        "Bisect": f"corebound bisect {ends} --scenario {file} --cell threads=2{project}",
        "Acknowledge": f"corebound regressions --accept {commits[1]} --because REASON",
    }
    # Without builds, the two recorded runs are compared.
    runs = f"{entry.last_good.run} {entry.first_bad.run}"
    assert lines_of(entry)["Compare"] == f"corebound compare {runs}"
    assert "Bisect" not in lines_of(entry)


def test_the_commands_of_a_change_of_memory_judge_memory() -> None:
    (entry,) = entries_of(replace(own("sum"), metric="peak memory", unit="MiB"))

    lines = [*lines_of(entry, built=True).values(), lines_of(entry)["Compare"]]

    assert all("--metric memory" in line for line in lines), lines


def test_only_pending_regressions_can_be_acknowledged() -> None:
    (gain,) = entries_of(a_stepped_series("a", 0.8))

    assert "Acknowledge" not in lines_of(gain)


def test_a_comparison_measures_the_scenarios_that_changed() -> None:
    (entry,) = entries_of(own("sum"), own("product"))

    files = lines_of(entry, built=True)["Compare"].split()[4:]

    assert sorted(files) == ["scenarios/product.yaml", "scenarios/sum.yaml"]


@pytest.mark.parametrize(("ratio", "invert"), [(1.2, ""), (0.8, "--invert ")])
def test_imported_commits_are_compared_by_their_values_and_bisected_by_asv(
    ratio: float, invert: str
) -> None:
    words = ("asv", "run", "--bench", r"^sum\b")
    (entry,) = entries_of(a_stepped_series("sum", ratio, reproduce=words))

    lines = lines_of(entry)

    assert lines["Compare"] == "corebound compare 0000000000 0000000000"
    assert lines["Bisect"] == rf"asv find {invert}0000000000..0000000000 '^sum\b'"


def test_a_host_that_finds_a_change_a_commit_late_does_not_clear_the_commits() -> None:
    early = a_stepped_series("a", 1.5, at=40, host="h1", host_name="one")
    late = a_stepped_series("a", 1.5, at=41, host="h2", host_name="two")
    # It measures each commit before the other does, and the first slow one by chance fast.
    sooner = [replace(point, at=point.at.replace("T02", "T01")) for point in late.points]
    late = replace(late, points=HistoryPoints.of(sooner))

    entries = [each for each in entries_of(early, late) if len(each.changes) == 2]

    (entry,) = entries
    assert entry.is_of_commits
    assert known(entry.last_good.commit).sha < known(entry.first_bad.commit).sha
