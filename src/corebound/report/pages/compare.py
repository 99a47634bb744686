"""The page that compares two runs or commits, and the page to choose two on."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.commit_comparison import CommitComparison, ComparedSeries
from corebound.analysis.compared import ComparedRow, comparison_summary, no_difference_note
from corebound.analysis.host_records import Record, by_host
from corebound.analysis.noise_floor import noise_floor_notes
from corebound.analysis.run_comparison import RunComparison, commit_title, recent_runs
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.series_names import series_name
from corebound.analysis.series_wording import interval_name
from corebound.analysis.suggested_commands import NO_COMMAND, CommandLine, between_command
from corebound.analysis.wording import count, day, full_name, rich
from corebound.present import compare
from corebound.present.changes import commit_link
from corebound.records.history import Series
from corebound.records.run_record import Commit, Run
from corebound.report import urls
from corebound.report.charts.intervals import LAUNCHES_NEEDED_NOTE
from corebound.report.elements import Content, Head, Hero, Page
from corebound.report.history.panel import history_panel
from corebound.report.inputs import PageContext
from corebound.report.scenario.sides import compared_sides

# The rows that differ most. The histories of the others are on their own pages.
_MOST_HISTORIES = 6
# The largest number of rows without a clear difference; the command shows all of them.
_MOST_UNCLEAR = 250
_MOST_NAMED = 50


def compare_page(comparison: compare.Compared, context: PageContext) -> Page:
    """Build the page of one comparison, with the histories in which both sides are marked."""
    if isinstance(comparison, RunComparison):
        return _runs(comparison, context)
    return _commits(comparison, context)


def _runs(comparison: RunComparison, context: PageContext) -> Page:
    before, after = comparison.before, comparison.after
    return _page(
        comparison,
        what="run",
        head=Head(
            title=f"Corebound: runs {before.id} and {after.id}",
            description=f"Two runs on {after.host.name}, cell by cell.",
            made=f"Measured with corebound {after.corebound}.",
        ),
        title=f"Two runs on {after.host.name}",
        context=f"{day(before.started_at)} against {day(after.started_at)}",
        support=noise_floor_notes(context.calibrations, after, launches=comparison.launches),
        names=(before.id, after.id),
        links=(f"../{urls.run_file(before)}", f"../{urls.run_file(after)}"),
        address=urls.comparison_file(before, after),
        histories=_histories_of_cells(comparison, context.history),
    )


def _commits(comparison: CommitComparison, context: PageContext) -> Page:
    project, before, after = comparison.project, comparison.before, comparison.after
    short, first = (before.sha[:10], after.sha[:10]), comparison.series[0]
    support = [_of_samples(comparison.series)]
    if not all(
        between_command((each.series,), each.before_point, each.after_point)
        for each in comparison.series
    ):
        support.append(NO_COMMAND)
    return _page(
        comparison,
        what="commit",
        head=Head(
            title=f"{project}: commits {short[0]} and {short[1]}",
            description=f"Two commits of {project}, benchmark by benchmark.",
            made=f"Imported from {project}; page made {day(context.now)}.",
        ),
        title=f"Two commits of {project}",
        context=f"{short[0]} against {short[1]}",
        support=support,
        names=short,
        links=(
            commit_link(first.series, first.before_point),
            commit_link(first.series, first.after_point),
        ),
        address=urls.commits_file(project, before.sha, after.sha),
        histories=_histories_of_series(comparison, context.history),
    )


def _page(
    comparison: compare.Compared,
    *,
    title: str,
    context: str,
    support: Sequence[str],
    names: tuple[str, str],
    links: tuple[str, str],
    address: str,
    **own: object,
) -> Page:
    """The page, with what only runs or only commits have."""
    noun, rows = compare.noun_of(comparison), comparison.rows
    unclear = [row for row in rows if not row.is_finding]
    notes = [LAUNCHES_NEEDED_NOTE] if any(row.launches_needed for row in unclear) else []
    if (left_out := len(unclear) - _MOST_UNCLEAR) > 0:
        notes.append(f"{left_out:,} more are not shown; the CSV below has all.")
    sentences = (f"{comparison_summary(rows, noun)}.", compare.reservation(comparison), *support)
    return Page(
        **own,
        noun=noun,
        hero=Hero(
            title=title,
            context=context,
            verdict=compare.comparison_verdict(comparison),
            support=rich(" ".join(filter(None, sentences))),
        ),
        command=CommandLine(f"corebound compare {' '.join(names)}"),
        sides=tuple(zip(("Before", "After"), compare.side_titles(comparison), links, strict=True)),
        findings=compare.compare_table(
            comparison, shows=lambda row: row.is_finding, address=_address
        ),
        others=compare.compare_table(
            comparison, shows=lambda row: not row.is_finding, most=_MOST_UNCLEAR, address=_address
        ),
        others_summary=no_difference_note(unclear),
        others_notes=tuple(notes),
        not_comparable=_limit(comparison.not_comparable),
        only_in_one=_limit(comparison.only_in_one),
        address=address,
        data=f"../{urls.data_of(address)}",
    )


def _limit(named: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    more = len(named) - _MOST_NAMED
    return (*named[:_MOST_NAMED], *([(f"{more:,} more", "")] if more > 0 else []))


def _address(row: ComparedRow) -> str:
    if isinstance(row, ComparedSeries):
        return f"../{urls.series_url(row.series)}"
    return f"../scenario/{row.scenario}.html"


def _of_samples(all_series: Sequence[ComparedSeries]) -> str:
    """What the brackets below the values contain, if there are any."""
    if not any(series.before_point.bounds or series.after_point.bounds for series in all_series):
        return ""
    name = interval_name(series.series for series in all_series)
    return f"Below each value is the {name} of its own samples."


def _histories_of_cells(comparison: RunComparison, history: ChangeHistory) -> list[Content]:
    """The histories of the cells that differ most, with both runs marked."""
    host = comparison.after.host.id
    series = {
        (series.scenario, series.cell): series
        for series in history.histories
        if series.host == host
    }
    words = {comparison.before.id: "before", comparison.after.id: "after"}
    panels: list[Content] = []
    for cell in comparison.cells:
        own = series.get((cell.scenario, cell.cell))
        moments = own.points.moments if own and cell.is_finding else ()
        marks = [(moment.at, words[moment.run]) for moment in moments if moment.run in words]
        if own is not None and len(marks) == len(words) and len(panels) < _MOST_HISTORIES:
            title = f"{cell.title}: {full_name(cell.configuration)}"
            panels.append(history_panel((own,), history, title=title, compared=marks))
    return panels


def _histories_of_series(comparison: CommitComparison, history: ChangeHistory) -> list[Content]:
    """The histories of the series that differ most, with both commits marked."""
    findings = [series for series in comparison.series if series.is_finding]
    return [
        history_panel(
            (series.series,),
            history,
            title=series_name(series.series),
            compared=[(series.before_point.at, "before"), (series.after_point.at, "after")],
        )
        for series in findings[:_MOST_HISTORIES]
    ]


# More cannot be chosen from; the command accepts any.
_MOST_CHOICES = 1_000
_SHA_DIGITS = 10


class Choice(NamedTuple):
    """A run or a commit: what `corebound compare` accepts, and its description."""

    value: str
    text: str


def comparisons_page(
    pairs: Sequence[tuple[Run, Run]],
    commits: Sequence[CommitComparison],
    groups: tuple[Content, ...],
    *,
    hosts: int,
    interleaved: Sequence[ScenarioResult] = (),
) -> Page:
    """Build the page.

    Args:
        pairs: The pairs of runs that have a page, the earlier run first.
        groups: What can be chosen, from `choice_groups`.
        hosts: The number of hosts with runs.
        interleaved: The results of `compare-commits`, which have pages of their own.
    """
    latest_first = sorted(
        pairs, key=lambda pair: (pair[1].started_at, pair[0].started_at), reverse=True
    )
    rows = [
        (after.host.name, _run(before), _run(after), urls.comparison_file(before, after))
        for before, after in latest_first
    ]
    rows += [
        (
            pair.project,
            _commit(pair.before),
            _commit(pair.after),
            urls.commits_file(pair.project, pair.before.sha, pair.after.sha),
        )
        for pair in commits
    ]
    # Those that can be chosen: interleaved sides are not in the lists.
    chosen = rows[0][1:3] if rows else groups[0].choices[1::-1] if groups else ()
    rows = [*map(_interleaved, interleaved), *rows]
    return Page(
        head=Head(
            title="Corebound: compare",
            description="Compare two runs or two commits.",
        ),
        hero=Hero(
            title="Compare",
            verdict=rich("Compare two runs or commits."),
            support=rich(f"{count(len(rows), 'comparison')} in this report." if rows else ""),
        ),
        groups=groups,
        recent=recent_runs(hosts),
        rows=rows,
        # The two that are chosen at first.
        chosen=chosen,
        command=CommandLine("corebound compare"),
    )


def _interleaved(result: ScenarioResult) -> tuple[str, Choice, Choice, str]:
    """The row of two sides that were measured interleaved."""
    sides = compared_sides(result)
    before, *_, after = sides.names if sides else ("", "")
    title, address = result.scenario.title, f"scenario/{result.scenario.name}.html"
    return title, Choice(before, before), Choice(after, after), address


def choice_groups(
    records: Sequence[Record], series: Iterable[Series], points: tuple[str, ...]
) -> tuple[Content, ...]:
    """Every host with two runs and every imported project with two commits.

    Args:
        records: Every run with its launches, in any order; only the runs are read.
        series: The histories that have points in the site.
        points: Addresses of scenarios' points, which have values of a host's runs.
    """
    groups = (*_hosts(records, points), *_projects(series))
    return tuple(group for group in groups if len(group.choices) > 1)


def _hosts(records: Sequence[Record], points: tuple[str, ...]) -> Iterable[Content]:
    for host_records in by_host(records).values():
        runs = [run for run, _ in host_records[: -_MOST_CHOICES - 1 : -1]]
        yield Content(
            title=f"Host {runs[0].host.name}",
            choices=tuple(map(_run, runs)),
            moments="",
            points=points,
        )


def _projects(series: Iterable[Series]) -> Iterable[Content]:
    # The series of a project share their moments.
    columns = {
        (each.project, id(each.points.moments)): each.points.moments
        for each in series
        if each.project is not None
    }
    projects: dict[str, dict[str, tuple[str, Commit]]] = {}
    for (project, _), moments in columns.items():
        projects.setdefault(project, {}).update(
            (moment.commit.sha, (moment.at, moment.commit))
            for moment in moments
            if moment.commit is not None
        )
    for project, commits in sorted(projects.items()):
        latest_first = sorted(commits.values(), key=lambda pair: pair[0], reverse=True)
        choices = tuple(_commit(commit) for _, commit in latest_first[:_MOST_CHOICES])
        yield Content(
            title=f"Project {project}",
            choices=choices,
            moments=urls.moments_file(project),
            points=(),
        )


def _run(run: Run) -> Choice:
    commit = f", commit {commit_title(run.commit)}" if run.commit else ""
    return Choice(run.id, f"{day(run.started_at)}, run {run.id}{commit}")


def _commit(commit: Commit) -> Choice:
    text = f"{day(commit.committed_at)}, {commit_title(commit)}"
    return Choice(commit.sha[:_SHA_DIGITS], text)
