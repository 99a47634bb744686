"""Where each page of the site is, as a path from its top."""

from __future__ import annotations

import hashlib
import re

from corebound.model.run import Run
from corebound.model.series import Series

_NOT_IN_A_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_SLUG = 60


def run_file(run: Run) -> str:
    """A run's page."""
    return f"run/{_slug(run.id)}.html"


def raw_file(run: Run) -> str:
    """A run's records, to download."""
    return f"data/run/{_slug(run.id)}.jsonl.gz"


def host_file(host: str) -> str:
    """A host's page, by its id."""
    return f"host/{_slug(host)}.html"


def comparison_file(run: Run, other: Run) -> str:
    """The page that compares two runs, the earlier one first."""
    return f"compare/{_slug(run.id)}-{_slug(other.id)}.html"


def comparison_data(run: Run, other: Run) -> str:
    """Every figure of that page, to download."""
    return f"data/{comparison_file(run, other).removesuffix('.html')}.csv"


def host_data(host: str) -> str:
    """All that a host's page shows, to download."""
    return f"data/{host_file(host).removesuffix('.html')}.json"


def commits_file(project: str, before: str, after: str) -> str:
    """The page that compares two commits of an imported project, by their hashes."""
    return f"compare/{_slug(project, unlike='project')}-{before[:12]}-{after[:12]}.html"


def commits_data(project: str, before: str, after: str) -> str:
    """Every figure of that page, to download."""
    return f"data/{commits_file(project, before, after).removesuffix('.html')}.csv"


def series_place(series: Series) -> str:
    """Where a series is shown, with the place on the page."""
    place = "history" if series.project is None else anchor_of(series)
    return f"{series_page(series)}#{place}"


def series_page(series: Series) -> str:
    """The page that a series is shown on."""
    if series.project is None:
        return f"scenario/{series.scenario}.html"
    return benchmark_file(series.project, series.scenario)


def benchmark_file(project: str, benchmark: str) -> str:
    """The page of an imported benchmark: readable, and unlike that of any other."""
    return f"history/{benchmark_slug(project, benchmark)}.html"


def benchmark_slug(project: str, benchmark: str) -> str:
    """The same without folder and ending."""
    digest = hashlib.sha256(f"{project}\0{benchmark}".encode()).hexdigest()[:8]
    return f"{_slug(benchmark, unlike='benchmark')}-{digest}"


def anchor_of(series: Series) -> str:
    """The place of a series on its page."""
    return f"s-{hashlib.sha256(series.id.encode()).hexdigest()[:10]}"


def _slug(text: str, *, unlike: str = "") -> str:
    """A name that is safe as a file's; one that had to be changed gets a digest of what it was."""
    slug = _NOT_IN_A_FILE_NAME.sub("-", text).strip("-.")[:_LONGEST_SLUG]
    if slug == text or unlike:
        return slug or unlike
    return f"{slug or 'x'}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
