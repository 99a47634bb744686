"""The index of the site's search: the name and address of each thing that has a page."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.host_records import Record
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.wording import day
from corebound.report.pages.benchmark import benchmarks_of
from corebound.report.urls import benchmark_file, host_file, run_file, series_url

# (name, path from the site's top), or with a detail that is found too.
Entry = tuple[str, str] | tuple[str, str, str]
# (kind, what all entries belong to, entries)
Group = tuple[str, str, Sequence[Entry]]

_SHA_DIGITS = 10


def search_script(
    results: Sequence[ScenarioResult], history: ChangeHistory, records: Sequence[Record]
) -> str:
    """A script that assigns the index, so that it also loads from a file.

    The order within one rank of matches: scenarios, benchmarks, hosts, commits, runs.

    Args:
        records: Every run with its launches, in any order; only the runs are read.
    """
    groups = [group for group in _groups(results, history, records) if group[2]]
    return f"corebound.index = {msgspec.json.encode(groups).decode()};\n"


def _groups(
    results: Sequence[ScenarioResult], history: ChangeHistory, records: Sequence[Record]
) -> Iterator[Group]:
    scenarios = [result.scenario for result in results]
    yield (
        "scenario",
        "",
        [(each.title, f"scenario/{each.name}.html", each.name) for each in scenarios],
    )
    projects: dict[str, list[Entry]] = {}
    for benchmark in benchmarks_of(history):
        address = benchmark_file(benchmark.project, benchmark.name)
        projects.setdefault(benchmark.project, []).append((benchmark.name, address))
    yield from (("benchmark", project, entries) for project, entries in projects.items())
    hosts = {
        run.host.id: (run.host.name, host_file(run.host.id), run.host.id) for run, _ in records
    }
    yield "host", "", list(hosts.values())
    yield "commit", "", list(_commits(history, records))
    yield (
        "run",
        "",
        [(run.id, run_file(run), f"{run.host.name}, {day(run.started_at)}") for run, _ in records],
    )


def _commits(history: ChangeHistory, records: Iterable[Record]) -> Iterator[Entry]:
    """Commits with a change, and commits of runs.

    Each leads to a series that changed with it, else to its latest run.
    """
    places: dict[str, tuple[str, str]] = {}
    for run, _ in sorted(records, key=lambda record: record[0].started_at):
        if run.commit is not None:
            places[run.commit.sha] = run_file(run), run.commit.subject
    for change in reversed((*history.changes, *history.unclear)):
        if (commit := change.first_bad.commit) is not None:
            places[commit.sha] = series_url(change.series), commit.subject
    for sha, (path, subject) in places.items():
        yield sha[:_SHA_DIGITS], path, subject
