"""What is new: regressions, improvements, inconclusive changes, and failures."""

from collections.abc import Mapping, Sequence

from corebound.analysis import wording
from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.host_records import Record, by_host
from corebound.analysis.series_wording import last_measured, last_moment, too_short_note
from corebound.analysis.suggested_commands import cells_command
from corebound.analysis.triage import (
    change_factor,
    commit_entries,
    group_by_commits,
    group_failures,
)
from corebound.present.changes import (
    ChangeGroup,
    change_table,
    entry_table,
    failure_table,
    group_changes,
    summary_table,
)
from corebound.records.history import Series, is_primary
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.report.elements import Content, linked_count, occurrence_numbers
from corebound.report.pages.series_table import give_or_gives
from corebound.report.urls import series_address
from corebound.stats.history.detection import RECENT_POINTS
from corebound.stats.history.regressions import Change


def failed_rows(run: Run, launches: Sequence[Launch]) -> list[Content]:
    """The launches of a run that do not count: one row per scenario, status and reason.

    A launch that was repeated in its block, and then counted, is not included.
    """
    measured = [launch for launch in launches if launch.kind == "measure"]
    counted = {(launch.cell.id, launch.block) for launch in measured if launch.status == "ok"}
    titles = {
        str(source.document.get("name")): str(source.document.get("title") or "")
        for source in run.scenarios
    }
    alike: dict[tuple[str, str, str], list[Launch]] = {}
    for launch in sorted(measured, key=lambda launch: launch.cell.id):
        if (launch.cell.id, launch.block) not in counted and launch.status != "skipped":
            reason = launch.reason or wording.full_name(launch.cell)
            alike.setdefault((launch.cell.scenario, launch.status, reason), []).append(launch)
    return [
        Content(
            run=run,
            title=titles.get(scenario) or scenario,
            launches=tuple(launches),
            # One cell may have several reasons.
            cells=cells,
            reason=reason,
            command=cells_command(run, cells),
        )
        for (scenario, _, reason), launches in alike.items()
        for cells in [tuple({launch.cell.id: launch.cell for launch in launches}.values())]
    ]


# The number of rows of each kind on the first page; the history page has all.
_MOST_ROWS = 20
# The least number of these rows for improvements, if there are that many.
_LEAST_BETTER = 5


def whats_new(history: ChangeHistory, records: Sequence[Record]) -> Content | None:
    """What the latest run of every host adds to its history; None without any history.

    Args:
        records: Every run with its launches, in any order.
    """
    if not history.histories:
        return None
    changes = history.news
    worse = [change for change in changes if change.is_regression]
    better = [change for change in changes if not change.is_regression]
    doubts = commit_entries(history.assessed[change.id] for change in history.inconclusive)
    latest = [own[-1] for own in by_host(records).values()]
    failed_of = {run.host.id: failed_rows(run, launches) for run, launches in latest}
    failed = [row for rows in failed_of.values() for row in rows]
    failed_cells = sum(
        len({cell.id for row in rows for cell in row.cells}) for rows in failed_of.values()
    )
    all_failing = history.failing_histories.values()
    # As recent as a change that counts as new.
    recent = [each for each in all_failing if each.points <= RECENT_POINTS]
    failing = group_failures(recent)
    slower, faster = (group_changes(_by_severity(changes), history) for changes in (worse, better))
    rows = _shown(slower, faster, history)
    nothing = wording.rich(_no_news(history))
    verdict = _verdict(
        _primary(worse), _primary(better), sum(is_primary(each.series) for each in recent)
    )
    return Content(
        # Whether a series changed, or no longer has results. Without that, the verdict says what is
        # known of the series.
        is_news=bool(verdict),
        verdict=verdict or nothing,
        support=(
            *((*nothing, *wording.rich(" ")) if recent and not changes else ()),
            *(_largest(rows[0]) if rows else ()),
            *_support(
                history,
                latest,
                failing=len(all_failing) - len(recent),
                failed=failed_cells,
            ),
        ),
        summary=summary_table(changes),
        changed=tuple(rows),
        table=change_table(rows, "What changed", series_address),
        inconclusive=entry_table(
            [(entry, entry.leading) for entry in doubts[:_MOST_ROWS]],
            history,
            "Inconclusive",
            series_address,
        ),
        failing=failure_table(failing[:_MOST_ROWS], series_address),
        failed=tuple(failed[:_MOST_ROWS]),
        # The rows beyond what the first page holds.
        more=_more(
            {
                "that changed": len(slower) + len(faster) - len(rows),
                "inconclusive": len(doubts) - _MOST_ROWS,
                "without a result": len(failing) - _MOST_ROWS,
                "of failed launches": len(failed) - _MOST_ROWS,
            }
        ),
    )


def _largest(group: ChangeGroup) -> wording.Text:
    """The first of what changed, and its size: `Largest: json.loads, 2.01× slower.`"""
    size, change = group.size, group.change
    where = series_address(change.series)
    return wording.rich("Largest: ", wording.strong(change.series.title, where), f", {size.word}. ")


def _more(hidden: Mapping[str, int]) -> str:
    """The number of rows that are only on other pages, by kind; empty if there are none."""
    parts = ", ".join(f"{number:,} {what}" for what, number in hidden.items() if number > 0)
    return f"More in the history and on the pages of runs: {parts}." if parts else ""


def _by_severity(changes: Sequence[Change]) -> list[Change]:
    """Primary benchmarks before secondary ones, then the largest change first."""
    return sorted(
        changes, key=lambda change: (not is_primary(change.series), -change_factor(change))
    )


def _primary(changes: Sequence[Change]) -> list[Change]:
    return [change for change in changes if is_primary(change.series)]


def _shown(
    worse: Sequence[ChangeGroup], better: Sequence[ChangeGroup], history: ChangeHistory
) -> list[ChangeGroup]:
    """The groups to show, regressions first.

    Each kind also gets the rows that the other one does not need.

    An event that changed a hundred benchmarks gets no more rows than one that changed two, as long
    as there are others.
    """
    events = {
        change.id: at for at, event in enumerate(group_by_commits(history.news)) for change in event
    }
    for_better = min(len(better), max(_LEAST_BETTER, _MOST_ROWS - len(worse)))
    return [
        *_alternate_events(worse, events, _MOST_ROWS - for_better),
        *_alternate_events(better, events, for_better),
    ]


def _alternate_events(
    groups: Sequence[ChangeGroup], events: Mapping[str, int], most: int
) -> list[ChangeGroup]:
    """At most `most` groups in their order, alternating between events.

    Our own scenarios come before imported ones.
    """
    turn = occurrence_numbers(events[group.change.id] for group in groups)
    first = sorted(
        range(len(groups)),
        key=lambda at: (groups[at].change.series.project is not None, turn[at], at),
    )
    return [groups[at] for at in sorted(first[:most])]


def _verdict(worse: Sequence[Change], better: Sequence[Change], failing: int) -> wording.Text:
    """What changed, and how many series no longer give values; empty if nothing changed."""
    parts: list[str | wording.TextSpan] = []
    if worse:
        parts += [
            f"{wording.count(_series_count(worse), 'series', 'series')} got ",
            wording.TextSpan(_direction_word(worse, "slower", "worse"), "bad"),
        ]
    if better:
        number = _series_count(better)
        got = f"{number:,} " if worse else f"{wording.count(number, 'series', 'series')} got "
        parts += [
            ", " if parts else "",
            got,
            wording.TextSpan(_direction_word(better, "faster", "better"), "good"),
        ]
    if failing:
        who = f", {failing:,}" if parts else wording.count(failing, "series", "series")
        parts += [f"{who} {give_or_gives(failing)} ", wording.TextSpan("no result", "bad")]
    return wording.rich(*parts, ".") if parts else ()


def _direction_word(changes: Sequence[Change], of_times: str, of_all: str) -> str:
    """The word for how series changed; only times and rates have a speed."""
    speeds = (change.series.is_of_time or change.series.more_is_better for change in changes)
    return of_times if all(speeds) else of_all


def _no_news(history: ChangeHistory) -> str:
    """What is known if nothing changed, limited to series where a change is detectable."""
    active = _active(history)
    every = len(active)
    able = sum(
        each.id not in history.too_short and each.id not in history.not_analysed for each in active
    )
    recorded = wording.count(every, "series", "series")
    if all(len(series.points) == 1 for series in history.histories):
        return f"{recorded} measured once so far."
    if every and not able and not history.not_analysed:
        return f"{recorded} recorded; too few values yet to detect changes."
    # If most series are too short, or one could not be analysed, the sentence covers only the
    # others.
    if history.not_analysed:
        return f"{able:,} of {recorded} analysed; no new change."
    if 2 * able < every:
        return f"{able:,} of {recorded} with enough data; no new change."
    return f"{recorded} watched; no new change."


def _series_count(changes: Sequence[Change]) -> int:
    return len({change.series.id for change in changes})


def _active(history: ChangeHistory) -> list[Series]:
    return [series for series in history.histories if series.id not in history.retired_series]


def _support(
    history: ChangeHistory, latest: Sequence[Record], *, failing: int, failed: int
) -> wording.Text:
    """The latest runs, and what is open besides the news.

    Args:
        latest: The latest run of each host with its launches; the page says when it was.
        failing: How many series have no results for longer.
        failed: How many configurations failed in the latest runs.
    """
    active = _active(history)
    parts: list[str | wording.TextSpan] = []
    if active and not latest:
        # Only imported series: the page shows their age nowhere else.
        parts.append(f"{wording.capital(last_measured(last_moment(active)))}. ")
    news = {change.id for change in history.news}
    regressions = [change for change in history.changes if change.is_regression]
    secondary = [
        change for change in regressions if change.id in news and not is_primary(change.series)
    ]
    still_open = [
        change
        for change in regressions
        if history.assessed[change.id].status == "open" and change.id not in news
    ]
    cells = ("configuration", "configurations")
    triage, not_analysed = "history.html#triage", len(history.not_analysed)
    doubts = _series_count(history.inconclusive)
    parts += [
        *linked_count(_series_count(secondary), "of secondary benchmarks got worse", triage),
        *linked_count(doubts, "inconclusive", "#inconclusive", noun=cells),
        *linked_count(failed, "failed in the latest run", "#failed", noun=cells),
        *linked_count(failing, "{have} been without results for longer", "history.html#failing"),
        *linked_count(not_analysed, "could not be analysed", "history.html#not-analysed"),
        *linked_count(_series_count(still_open), "{have} an older regression that is open", triage),
    ]
    short = too_short_note(sum(each.id in history.too_short for each in active), len(active))
    many, colon, why = short.partition(":")
    parts += [wording.strong(many), f"{colon}{why} "] if short else []
    return wording.rich(*parts, "New: last 30 runs, not acknowledged.")
