"""The page to choose two runs or two commits on: it leads to their comparison, or makes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from corebound.analysis.commit_comparison import CommitComparison
from corebound.analysis.host_records import Record, by_host
from corebound.analysis.run_comparison import commit_title, recent_runs
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.suggested_commands import CommandLine
from corebound.analysis.wording import count, day, rich
from corebound.records.history import Series
from corebound.records.run_record import Commit, Run
from corebound.report.elements import Head, Hero, Page
from corebound.report.scenario.sides import compared_sides
from corebound.report.urls import commits_file, comparison_file, moments_file

# More cannot be chosen from; the command accepts any.
_MOST_CHOICES = 1_000
_SHA_DIGITS = 10


class Choice(Struct, frozen=True, kw_only=True):
    """A run or a commit: what `corebound compare` accepts, and its description."""

    value: str
    text: str


class ChoiceGroup(Struct, frozen=True, kw_only=True):
    """Choices that may be comparable with each other: of one host, or of one imported project.

    Attributes:
        moments: Address of a project's moments, which name the points of its benchmarks.
        points: Addresses of scenarios' points, which have values of a host's runs.
    """

    title: str
    choices: tuple[Choice, ...]
    moments: str = ""
    points: tuple[str, ...] = ()


def comparisons_page(
    pairs: Sequence[tuple[Run, Run]],
    commits: Sequence[CommitComparison],
    groups: tuple[ChoiceGroup, ...],
    *,
    hosts: int,
    interleaved: Sequence[ScenarioResult] = (),
) -> Page:
    """Build the page.

    Args:
        pairs: The pairs of runs that have a page, the earlier run first.
        commits: The comparisons of commits that have a page.
        groups: What can be chosen, from `choice_groups`.
        hosts: The number of hosts with runs.
        interleaved: The results of `compare-commits`, which have pages of their own.
    """
    latest_first = sorted(
        pairs, key=lambda pair: (pair[1].started_at, pair[0].started_at), reverse=True
    )
    rows = [
        (after.host.name, _run(before), _run(after), comparison_file(before, after))
        for before, after in latest_first
    ]
    rows += [
        (
            pair.project,
            _commit(pair.before),
            _commit(pair.after),
            commits_file(pair.project, pair.before.sha, pair.after.sha),
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
    return title, Choice(value=before, text=before), Choice(value=after, text=after), address


def choice_groups(
    records: Sequence[Record], series: Iterable[Series], points: tuple[str, ...]
) -> tuple[ChoiceGroup, ...]:
    """Every host with two runs and every imported project with two commits.

    Args:
        records: Every run with its launches, in any order; only the runs are read.
        series: The histories that have points in the site.
        points: As in `ChoiceGroup`.
    """
    groups = (*_hosts(records, points), *_projects(series))
    return tuple(group for group in groups if len(group.choices) > 1)


def _hosts(records: Sequence[Record], points: tuple[str, ...]) -> Iterable[ChoiceGroup]:
    for host_records in by_host(records).values():
        runs = [run for run, _ in host_records[: -_MOST_CHOICES - 1 : -1]]
        yield ChoiceGroup(
            title=f"Host {runs[0].host.name}", choices=tuple(map(_run, runs)), points=points
        )


def _projects(series: Iterable[Series]) -> Iterable[ChoiceGroup]:
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
        yield ChoiceGroup(
            title=f"Project {project}", choices=choices, moments=moments_file(project)
        )


def _run(run: Run) -> Choice:
    commit = f", commit {commit_title(run.commit)}" if run.commit else ""
    return Choice(value=run.id, text=f"{day(run.started_at)}, run {run.id}{commit}")


def _commit(commit: Commit) -> Choice:
    return Choice(
        value=commit.sha[:_SHA_DIGITS], text=f"{day(commit.committed_at)}, {commit_title(commit)}"
    )
