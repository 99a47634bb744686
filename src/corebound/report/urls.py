"""The path of each page and download, relative to the site's top."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial

from corebound.analysis.triage import CommitEntry
from corebound.records.history import Series
from corebound.records.race import RaceSetup
from corebound.records.run_record import Run
from corebound.scenario.metrics import JudgedBy
from corebound.text import path_component

_LONGEST_READABLE = 60
HISTORY_PAGE = "history.html"


def trace_file(launch: str) -> str:
    """The download of a launch's trace, by launch id."""
    return f"traces/{path_component(launch)}.json.gz"


def badge_file(scenario: str) -> str:
    """The badge of a scenario, by its name."""
    return f"badge/{scenario}.svg"


def run_file(run: Run) -> str:
    """A run's page."""
    return f"run/{path_component(run.id)}.html"


def raw_file(run: Run) -> str:
    """The download of a run's records."""
    return f"data/run/{path_component(run.id)}.jsonl.gz"


def tune_file(run: Run, scenario: str, tuning: RaceSetup) -> str:
    """The page of a host's latest race of a scenario for an objective and a load."""
    load = "".join(
        f"-{path_component(name)}-{path_component(value)}" for name, value in tuning.load
    )
    place = f"{path_component(run.host.id)}-{path_component(scenario)}"
    return f"tune/{place}-{tuning.objective}{load}.html"


def host_file(host: str) -> str:
    """A host's page, by its id."""
    return f"host/{path_component(host)}.html"


def comparison_file(run: Run, other_run: Run) -> str:
    """The page that compares two runs, the earlier one first."""
    return f"compare/{path_component(run.id)}-{path_component(other_run.id)}.html"


def commits_file(project: str, before: str, after: str) -> str:
    """The page that compares two commits of an imported project, by their hashes."""
    shas = (path_component(sha[:12]) for sha in (before, after))
    return f"compare/{'-'.join((path_component(project), *shas))}.html"


def data_of(page: str, kind: str = "csv") -> str:
    """The download of everything that a page shows, as a file of this kind."""
    return f"data/{page.removesuffix('.html')}.{kind}"


def series_url(series: Series) -> str:
    """The page that shows a series, with the fragment of its place there."""
    place = "memory" if series.metric else "history"
    anchor = place if series.project is None else series_anchor(series)
    return f"{series_page(series)}#{anchor}"


def series_page(series: Series) -> str:
    """The page that shows a series."""
    if series.project is None:
        return f"scenario/{series.scenario}.html"
    return benchmark_file(series.project, series.scenario)


def benchmark_file(project: str, benchmark: str) -> str:
    """The page of an imported benchmark; the path is readable and unique."""
    return f"history/{benchmark_slug(project, benchmark)}.html"


def benchmark_slug(project: str, benchmark: str) -> str:
    """The same path without folder and extension."""
    digest = hashlib.sha256(f"{project}\0{benchmark}".encode()).hexdigest()[:8]
    # The digest includes the project, so that the component's own digest is not needed.
    readable, _, _ = path_component(benchmark).partition("~")
    return f"{readable[:_LONGEST_READABLE]}-{digest}"


def points_file(project: str, benchmark: str) -> str:
    """The download of all points of an imported benchmark."""
    return f"data/history/{benchmark_slug(project, benchmark)}.js"


def moments_file(project: str) -> str:
    """The download of the moments that all points of a project refer to."""
    return f"data/history/{path_component(project)}.moments.js"


def scenario_points_file(scenario: str) -> str:
    """The download of all points of a scenario, with their moments."""
    return f"data/{scenario}.history.js"


def series_anchor(series: Series) -> str:
    """The fragment of a series on its page."""
    return f"s-{hashlib.sha256(series.id.encode()).hexdigest()[:10]}"


def entry_anchor(entry: CommitEntry) -> str:
    """The fragment of a commit on the history page."""
    return f"commit-{entry.id}"


def series_address(shown: Series | CommitEntry) -> str:
    """The address of a series, for tables on a page on which a commit has its own place."""
    return series_url(shown) if isinstance(shown, Series) else ""


def pages_at(site: str, metric: JudgedBy = "time") -> Callable[[Series | CommitEntry], str]:
    """What gives the address of a series or a commit; a page of commits shows those of times."""
    place = partial(place_of, site=site)
    return (
        place
        if metric == "time"
        else lambda shown: place(shown) if isinstance(shown, Series) else ""
    )


def place_of(shown: Series | CommitEntry, site: str) -> str:
    """The address of a series or of a commit with changes, in a site at this folder or URL."""
    page = f"{HISTORY_PAGE}#{entry_anchor(shown)}" if isinstance(shown, CommitEntry) else ""
    return f"{site.rstrip('/')}/{page or series_address(shown)}"
