"""What is new: regressions, improvements, inconclusive changes, and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from corebound.analysis.change_history import ChangeHistory, sizes_word
from corebound.analysis.commands import CommandLine, cells_command
from corebound.analysis.host_records import Record, by_host
from corebound.analysis.wording import (
    Label,
    Text,
    TextSpan,
    capital,
    count,
    day,
    full_name,
    label,
    last_measured,
    last_moment,
    rich,
    strong,
    too_short_words,
)
from corebound.records.history import Series
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.report.elements import occurrence_numbers
from corebound.report.pages.changes import (
    ChangeGroup,
    change_group,
    group_by_commits,
    group_changes,
)
from corebound.report.pages.history import not_analysed_words
from corebound.report.pages.series_table import (
    Notice,
    failing_notices,
    give_or_gives,
    is_recent,
    series_notice,
)
from corebound.report.urls import run_file
from corebound.stats.history.regressions import Change


class FailedRow(Struct, frozen=True, kw_only=True):
    """Launches of the latest run that do not count, for one reason.

    `label` is of the first of `cells` of one scenario; `command` launches them again. `ids` are
    those of the cells: one cell may have several reasons.
    """

    title: str
    address: str
    label: Label
    cells: int
    ids: frozenset[str]
    status: str
    reason: str
    command: CommandLine | None


def _is_good(launch: Launch) -> bool:
    return launch.kind == "measure" and launch.status == "ok"


def failed_rows(run: Run, launches: Sequence[Launch]) -> list[FailedRow]:
    """One row per scenario, status and reason of the run.

    A launch that was repeated in its block, and then counted, is not included.
    """
    repeated = {(one.cell.id, one.block) for one in launches if _is_good(one)}
    titles = {
        str(source.document.get("name")): str(source.document.get("title") or "")
        for source in run.scenarios
    }
    alike: dict[tuple[str, str, str], list[Launch]] = {}
    for launch in sorted(launches, key=lambda one: one.cell.id):
        if (launch.cell.id, launch.block) in repeated:
            continue
        if launch.kind == "measure" and launch.status not in {"ok", "skipped"}:
            reason = launch.reason or full_name(launch.cell)
            alike.setdefault((launch.cell.scenario, launch.status, reason), []).append(launch)
    return [
        FailedRow(
            title=titles.get(scenario) or scenario,
            address=run_file(run),
            label=label(own[0].cell),
            cells=len(cells),
            ids=frozenset(cell.id for cell in cells),
            status=f"{len(own)} {status}",
            reason=reason,
            command=cells_command(run, cells),
        )
        for (scenario, status, reason), own in alike.items()
        for cells in [tuple({one.cell.id: one.cell for one in own}.values())]
    ]


# The number of rows of each kind on the first page; the history page has all.
_MOST_ROWS = 20
# The least number of these rows for improvements, if there are that many.
_LEAST_BETTER = 5


class WhatsNew(Struct, frozen=True, kw_only=True):
    """What is new; `more` counts the rows beyond what the first page holds."""

    verdict: Text
    support: Text
    changed: tuple[ChangeGroup, ...]
    doubts: tuple[Notice, ...]
    failing: tuple[Notice, ...]
    failed: tuple[FailedRow, ...]
    more: str


def whats_new(known: ChangeHistory, records: Sequence[Record]) -> WhatsNew | None:
    """What the latest run of every host adds to its history; None without any history.

    Args:
        known: All histories with their changes.
        records: Every run with its launches, in any order.
    """
    if not known.histories:
        return None
    news = known.news
    worse = [one for one in news if one.is_regression]
    better = [one for one in news if not one.is_regression]
    doubts = _inconclusive(known)
    latest = [own[-1] for own in by_host(records).values()]
    going = [one for one in known.histories if one.id not in known.ended]
    short = sum(one.id in known.too_short for one in going)
    failed_of = {run.host.id: failed_rows(run, launches) for run, launches in latest}
    failed = [row for rows in failed_of.values() for row in rows]
    failed_cells = sum(len({id_ for row in rows for id_ in row.ids}) for rows in failed_of.values())
    recent = [one for one in known.failing.values() if is_recent(one)]
    failing = failing_notices(recent, known)
    slower, faster = (group_changes(_own_first(several), known) for several in (worse, better))
    rows = _shown(slower, faster, known)
    able = len(going) - short - sum(one.id in known.not_analysed for one in going)
    nothing = _no_news(known, able=able, every=len(going))
    return WhatsNew(
        verdict=_verdict(worse, better, len(recent)) or rich(nothing),
        support=_support(
            latest,
            going,
            first="" if news or not recent else nothing,
            failing=len(known.failing) - len(recent),
            older=_still_open(known),
            doubts=len({one.series.id for one in known.undecided}),
            failed=failed_cells,
            short=too_short_words(short, len(going)),
            not_analysed=len(known.not_analysed),
        ),
        changed=tuple(change_group(one, known) for one in rows),
        doubts=tuple(doubts[:_MOST_ROWS]),
        failing=tuple(failing[:_MOST_ROWS]),
        failed=tuple(failed[:_MOST_ROWS]),
        more=_more(
            {
                "that changed": len(slower) + len(faster) - len(rows),
                "undecided": len(doubts) - _MOST_ROWS,
                "without a figure": len(failing) - _MOST_ROWS,
                "of failed launches": len(failed) - _MOST_ROWS,
            }
        ),
    )


def _more(hidden: Mapping[str, int]) -> str:
    """The number of rows that are only on other pages, by kind; empty if there are none."""
    parts = ", ".join(f"{number:,} {what}" for what, number in hidden.items() if number > 0)
    return f"More rows, on the pages of the history and of the runs: {parts}." if parts else ""


def _own_first(found: Sequence[Change]) -> list[Change]:
    return sorted(found, key=lambda one: one.series.project is not None)


def _shown(
    worse: Sequence[tuple[Change, ...]], better: Sequence[tuple[Change, ...]], known: ChangeHistory
) -> list[tuple[Change, ...]]:
    """The groups to show, regressions first.

    Each kind also gets the rows that the other one does not need.

    An event that changed a hundred benchmarks gets no more rows than one that changed two, as long
    as there are others.
    """
    events = {one.id: at for at, event in enumerate(group_by_commits(known.news)) for one in event}
    for_better = min(len(better), max(_LEAST_BETTER, _MOST_ROWS - len(worse)))
    return [
        *_alternate_events(worse, events, _MOST_ROWS - for_better),
        *_alternate_events(better, events, for_better),
    ]


def _alternate_events(
    groups: Sequence[tuple[Change, ...]], events: Mapping[str, int], most: int
) -> list[tuple[Change, ...]]:
    """At most `most` groups in their order, alternating between events.

    Our own scenarios come before imported ones.
    """
    turn = occurrence_numbers(events[group[0].id] for group in groups)
    first = sorted(
        range(len(groups)), key=lambda at: (groups[at][0].series.project is not None, turn[at], at)
    )
    return [groups[at] for at in sorted(first[:most])]


def _verdict(worse: Sequence[Change], better: Sequence[Change], failing: int) -> Text:
    """What changed, and how many cells no longer give values; empty if nothing changed."""
    parts: list[str | TextSpan] = []
    if worse:
        parts += [
            f"{_cell_count(worse)} got ",
            TextSpan(_direction_word(worse, "slower", "worse"), "bad"),
        ]
    if better:
        got = f"{_cell_count(better)} got " if not worse else f"{_cell_count(better, noun='')} "
        parts += [
            ", " if parts else "",
            got,
            TextSpan(_direction_word(better, "faster", "better"), "good"),
        ]
    if failing:
        who = f", {failing:,}" if parts else count(failing, "cell")
        parts += [f"{who} {give_or_gives(failing)} ", TextSpan("no figure", "bad")]
    return rich(*parts, ".") if parts else ()


def _direction_word(found: Sequence[Change], of_times: str, of_all: str) -> str:
    """The word for how cells changed; only times and rates have a speed."""
    speeds = (one.series.unit == "ns" or one.series.more_is_better for one in found)
    return of_times if all(speeds) else of_all


def _no_news(known: ChangeHistory, *, able: int, every: int) -> str:
    """The statement that nothing changed, limited to series where a change is detectable."""
    if all(len(one.points) == 1 for one in known.histories):
        return "Measured once so far."
    if every and not able and not known.not_analysed:
        return "Too early to tell what changed."
    # If most series are too short, or one could not be analysed, the sentence covers only the
    # others.
    of = f" in {able:,} of {every:,} series" if 2 * able < every or known.not_analysed else ""
    return f"Nothing got slower, nothing faster{of}."


def _cell_count(found: Sequence[Change], noun: str = "cell") -> str:
    number = len({one.series.id for one in found})
    return count(number, noun).strip() if noun else f"{number:,}"


def _still_open(known: ChangeHistory) -> int:
    """The number of regressions that are no longer new and still open."""
    news = {one.id for one in known.news}
    return sum(
        one.is_regression and known.status(one) == "open" and one.id not in news
        for one in known.changes
    )


def _support(
    latest: Sequence[Record],
    going: Sequence[Series],
    *,
    first: str,
    failing: int,
    older: int,
    doubts: int,
    failed: int,
    short: str,
    not_analysed: int,
) -> Text:
    parts: list[str | TextSpan] = [f"{first} "] if first else []
    if latest:
        when = max(run.started_at for run, _ in latest)
        where = latest[0][0].host.name if len(latest) == 1 else count(len(latest), "host")
        parts.append(f"Latest run {day(when)} on {where}. ")
    elif going:
        # Only imported series: the page shows their age nowhere else.
        parts.append(f"{capital(last_measured(last_moment(going)))}. ")
    if doubts:
        parts += [strong(f"{count(doubts, 'cell')} could not be decided", "#undecided"), ". "]
    if failed:
        parts += [
            strong(f"{count(failed, 'cell')} had launches that do not count", "#failed"),
            ". ",
        ]
    if failing:
        said = f"{count(failing, 'cell')} {'has' if failing == 1 else 'have'} given none for longer"
        parts += [strong(said, "history.html#failing"), ". "]
    parts += not_analysed_words(not_analysed, "history.html#not-analysed")
    if older:
        said = f"{count(older, 'older regression')} {'is' if older == 1 else 'are'} still open"
        parts += [strong(said, "history.html#regressions"), ". "]
    if short:
        many, colon, why = short.partition(":")
        parts += [strong(many), f"{colon}{why} "]
    parts.append("New is what changed within the last 30 runs and nobody has accepted.")
    return rich(*parts)


def _inconclusive(known: ChangeHistory) -> list[Notice]:
    """Change points that are not clear, and early warnings; grouped."""
    return [
        series_notice([one.series for one in group], known, f"{sizes_word(group).word}, {why}")
        for why, several in _group_by_reason(known).items()
        for group in _group_by_scenario(several)
    ]


def _group_by_reason(known: ChangeHistory) -> dict[str, list[Change]]:
    """Inconclusive changes, by the reason."""
    found: dict[str, list[Change]] = {}
    for one in known.undecided:
        why = "clear in the history"
        if not one.step.votes:
            why = "in the last two runs, too few yet"
        elif not one.clear:
            why = "not clear among so many series"
        answer = known.answer(one)
        found.setdefault(f"{why}; {answer}" if answer else why, []).append(one)
    return found


def _group_by_scenario(found: Sequence[Change]) -> list[list[Change]]:
    """Changes grouped by scenario, host and direction, in their order."""
    groups: dict[tuple[object, ...], list[Change]] = {}
    for one in found:
        series = one.series
        key = (series.project, series.host, series.scenario, series.unit, one.is_regression)
        groups.setdefault(key, []).append(one)
    return list(groups.values())
