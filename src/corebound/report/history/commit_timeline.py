"""What each of a project's latest commits changed, as bars."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from corebound.analysis.change_history import ChangeHistory, environment_difference
from corebound.analysis.triage import CommitEntry
from corebound.analysis.wording import count
from corebound.records.history import HistoryPoint, Moment, Series
from corebound.report.charts.axis import Tick
from corebound.report.charts.commits import CommitBar, bar_height
from corebound.report.elements import Content
from corebound.report.urls import entry_anchor

_MOST_COMMITS = 60
# Labels for more commits would overlap.
_MOST_NAMED = 5
_LEAST_APART = 6
_MOST_BORDERS = 3
_DATES = 4
_SHORT_SHA = 7


def commit_timelines(entries: Sequence[CommitEntry], history: ChangeHistory) -> tuple[Content, ...]:
    """A timeline for our own scenarios and for each project with a recent change."""
    projects: dict[str | None, list[Series]] = {}
    for series in history.histories:
        projects.setdefault(series.project, []).append(series)
    by_project: dict[str | None, list[CommitEntry]] = {}
    for entry in entries:
        by_project.setdefault(entry.project, []).append(entry)
    timelines = (
        _timeline(project, all_series, by_project.get(project, ()))
        for project, all_series in sorted(projects.items(), key=lambda item: item[0] or "")
    )
    return tuple(timeline for timeline in timelines if timeline is not None)


def _timeline(
    project: str | None, all_series: Sequence[Series], entries: Iterable[CommitEntry]
) -> Content | None:
    """The timeline of one project; None if none of its latest commits changed anything."""
    first_seen: dict[str, str] = {}
    previous: tuple[Moment, ...] = ()
    for series in all_series:
        moments = series.points.moments
        # The series of a host share their moments, and are neighbours.
        if moments is not previous:
            for moment in moments:
                name = _name(moment)
                first_seen[name] = min(first_seen.get(name, moment.at), moment.at)
        previous = moments
    latest = sorted(first_seen, key=lambda name: (first_seen[name], name))[-_MOST_COMMITS:]
    places = {name: place for place, name in enumerate(latest)}
    bars = [CommitBar(name=_short(name)) for name in latest]
    for entry in entries:
        place = places.get(_name(entry.first_bad))
        if place is not None:
            bars[place] = _with_entry(bars[place], entry)
    if not any(bar.link for bar in bars):
        return None
    is_known = any(series.points.latest_moment.commit for series in all_series)
    what = "commit" if is_known else "nightly run"
    of_project = f" of {project}" if project else ""
    return Content(
        title=f"Last {count(len(bars), what)}{of_project}",
        bars=tuple(bars),
        labels=_labels(bars),
        borders=_borders(all_series, places),
        along=_dates([first_seen[name] for name in latest]),
    )


def _name(point: Moment | HistoryPoint) -> str:
    """A commit's hash, or the moment if the commit is unknown."""
    return point.commit.sha if point.commit else point.at


def _short(name: str) -> str:
    return name[:10] if "-" in name[:_SHORT_SHA] else name[:_SHORT_SHA]


def _with_entry(bar: CommitBar, entry: CommitEntry) -> CommitBar:
    """A bar with the changes of an entry added."""
    added = Counter(
        (change.change.is_regression, change.change.series.importance) for change in entry.changes
    )
    return replace(
        bar,
        link=bar.link or entry_anchor(entry),
        faster=(
            bar.faster[0] + added[False, "primary"], bar.faster[1] + added[False, "secondary"],
        ),
        slower=(bar.slower[0] + added[True, "primary"], bar.slower[1] + added[True, "secondary"]),
    )  # fmt: skip


def _labels(bars: Sequence[CommitBar]) -> tuple[tuple[str, float, float], ...]:
    """The names of the commits that changed most, as far apart as their width requires."""
    most = max(max(sum(bar.faster), sum(bar.slower)) for bar in bars)
    largest = sorted(
        (place for place, bar in enumerate(bars) if bar.link),
        key=lambda place: (-sum(bars[place].slower + bars[place].faster), place),
    )
    named: list[int] = []
    for place in largest:
        if len(named) < _MOST_NAMED and all(abs(place - at) >= _LEAST_APART for at in named):
            named.append(place)
    return tuple(
        (
            bars[place].name,
            round((place + 0.5) / len(bars) * 100, 1),
            round(50 - bar_height(sum(bars[place].faster), most) * 46, 1),
        )
        for place in sorted(named)
    )


def _borders(all_series: Sequence[Series], places: dict[str, int]) -> tuple[tuple[float, str], ...]:
    """Where the environment of at least half of a machine's series changed; the latest few.

    Of several machines, each is named.
    """
    changes: Counter[tuple[int, str, str]] = Counter()
    of_machine = Counter(series.host_name for series in all_series)
    for series in all_series:
        keys, moments = series.points.environment_keys, series.points.moments
        for at in series.points.breaks:
            place = places.get(_name(moments[at]))
            if place is not None:
                what = environment_difference(keys[at - 1], keys[at])
                changes[place, series.host_name, what] += 1
    common: dict[int, list[str]] = {}
    for (place, machine, what), number in sorted(changes.items()):
        if 2 * number >= of_machine[machine]:
            where = f"{machine}: " if len(of_machine) > 1 else ""
            common.setdefault(place, []).append(f"{where}{what}")
    return tuple(
        (place / len(places), "; ".join(common[place])) for place in [*common][-_MOST_BORDERS:]
    )


def _dates(moments: Sequence[str]) -> tuple[Tick, ...]:
    """A few dates along the commits, which are not evenly spaced in time."""
    last = len(moments) - 1
    indices = sorted({round(number * last / (_DATES - 1)) for number in range(_DATES)})
    return tuple(
        Tick(
            at=round((index + 0.5) / len(moments) * 100, 1),
            text=moments[index][:10],
            minor=0 < number < len(indices) - 1,
        )
        for number, index in enumerate(indices)
    )
