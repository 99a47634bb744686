"""Renders every page and data file of the site as (path, text).

The writer compresses files whose names end in `.gz`.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from corebound.analysis.change_history import ChangeHistory, chronicle
from corebound.analysis.commit_comparison import compare_commits
from corebound.analysis.comparison import RunComparison, comparisons
from corebound.analysis.findings import findings
from corebound.analysis.host_records import host_studies
from corebound.analysis.scenario_result import ScenarioResult
from corebound.records import jsonl
from corebound.records.history import Series
from corebound.report.downloads import (
    cells_csv,
    cells_json,
    changes_csv,
    commits_csv,
    comparison_csv,
    host_json,
    imported_csv,
    operators_csv,
)
from corebound.report.history.export import history_csv
from corebound.report.history.zoom import points_script
from corebound.report.inputs import Inputs
from corebound.report.pages.benchmark import (
    ImportedBenchmark,
    benchmark_page,
    benchmarks_of,
    charted,
)
from corebound.report.pages.claims import claims_page
from corebound.report.pages.compare import compare_page, comparison_links
from corebound.report.pages.compare_commits import commits_page
from corebound.report.pages.feed import feed
from corebound.report.pages.history import triage_page
from corebound.report.pages.host import host_links, host_page
from corebound.report.pages.operators import operators_page
from corebound.report.pages.overview import overview_page
from corebound.report.pages.run import run_page
from corebound.report.render import Renderer
from corebound.report.scenario.page import scenario_page
from corebound.report.urls import (
    benchmark_file,
    benchmark_slug,
    commits_data,
    comparison_data,
    host_data,
    run_file,
)

Holds = Callable[[str, str], bool]


def pages(
    inputs: Inputs,
    studies: Sequence[ScenarioResult],
    renderer: Renderer,
    holds: Holds,
    *,
    traces: Mapping[str, str],
    raw: bool,
) -> Iterator[tuple[str, str]]:
    """Render every page and data file as (path within the site, text).

    The overview comes last, so that the pages it links to exist before it.

    Args:
        inputs: The data that the site is made from.
        studies: The latest result of each scenario in the records.
        renderer: A renderer with the templates.
        holds: Whether the site has a file made from inputs with this key; such a file is not made
            again.
        traces: For each launch whose trace is in the site, its path from the site's top.
        raw: Whether the records themselves are in the site.
    """
    # Comparisons come first, so that pairs that are not comparable are reported before any page is
    # written.
    asked = [(one.before, one.after) for one in inputs.compared if one.project is None]
    compared = comparisons(inputs.records, asked, inputs.past)
    known = chronicle(
        inputs.series,
        studies,
        decisions=inputs.decisions,
        confirmations=inputs.confirmations,
        memory=inputs.memory,
        mapper=inputs.mapper,
        progress=partial(inputs.progress, "looking for steps in series"),
    )
    for name, reason in known.not_analysed.items():
        inputs.warn(f"{name}: its changes could not be analysed: {reason}")
    commits = [
        compare_commits(one.project, one.before, one.after, known)
        for one in inputs.compared
        if one.project is not None
    ]
    yield from _scenarios(studies, inputs, known, renderer, traces)
    yield from _benchmarks(inputs, known, renderer, holds)
    yield from _runs(inputs, renderer, holds, raw=raw)
    yield from _hosts(inputs, compared, known, renderer)
    linked: list[tuple[str, str]] = []
    for name, words, text in _about_all(studies, inputs, known, compared, renderer):
        yield name, text
        if words:
            linked.append((words, name))
    linked += comparison_links(compared)
    for pair in commits:
        page = commits_page(pair, known, now=inputs.now)
        yield commits_data(pair.project, pair.before.sha, pair.after.sha), commits_csv(pair)
        yield page.address, renderer.page("compare", page)
        linked.append((page.head.title, page.address))
    linked += host_links(inputs.records)
    yield (
        "index.html",
        renderer.page(
            "overview",
            overview_page(
                studies,
                now=inputs.now,
                pages=linked,
                known=known,
                records=inputs.records,
                calibrations=inputs.calibrations,
                faults=inputs.faults,
            ),
        ),
    )


def _scenarios(
    studies: Sequence[ScenarioResult],
    inputs: Inputs,
    known: ChangeHistory,
    renderer: Renderer,
    traces: Mapping[str, str],
) -> Iterator[tuple[str, str]]:
    above = {launch: f"../{file}" for launch, file in traces.items()}
    for study in studies:
        name = study.scenario.name
        found = findings(study)
        page = scenario_page(
            study,
            found=found,
            now=inputs.now,
            records_file=jsonl.file_of(study.run, Path()).as_posix(),
            traces=above,
            known=known,
            calibrations=inputs.calibrations,
        )
        yield f"data/{name}.csv", cells_csv(study, inputs.records_folder)
        yield f"data/{name}.json", cells_json(study, found, inputs.records_folder)
        if operators := operators_csv(study):
            yield f"data/{name}.operators.csv", operators
        if grown := known.grown(project=None, scenario=name):
            yield f"data/{name}.history.csv", history_csv(grown)
            yield f"data/{name}.history.js", points_script(grown)
        yield f"scenario/{name}.html", renderer.page("scenario", page)


def _benchmarks(
    inputs: Inputs, known: ChangeHistory, renderer: Renderer, holds: Holds
) -> Iterator[tuple[str, str]]:
    # Each benchmark has three files: its points as CSV, where thousands of lines are similar (our
    # own scenarios have dozens), its points as a script, and its page.
    wanted: list[tuple[tuple[str, ...], ImportedBenchmark]] = []
    for one in benchmarks_of(known):
        data = f"data/history/{benchmark_slug(one.project, one.name)}"
        files = (f"{data}.csv.gz", f"{data}.js", benchmark_file(one.project, one.name))
        key = _key(inputs, one.project, one.series, known)
        # Every file is checked, so that each is remembered under its key if it is made.
        held = [key is not None and holds(file, key) for file in files]
        if not all(held):
            wanted.append((files, one))

    def made(told: tuple[tuple[str, ...], ImportedBenchmark]) -> list[tuple[str, str]]:
        files, one = told
        page = benchmark_page(one.project, one.series, known, now=inputs.now, silent=one.silent)
        texts = (
            history_csv(one.series),
            points_script(charted(one.series, known)),
            renderer.page("benchmark", page),
        )
        return list(zip(files, texts, strict=True))

    # The first page is made in this process: that compiles the templates once, instead of in each
    # process that makes the others.
    every = itertools.chain(map(made, wanted[:1]), inputs.mapper(made, wanted[1:]))
    for done, texts in enumerate(every, start=1):
        yield from texts
        inputs.progress("pages of benchmarks", done, len(wanted))


def _key(
    inputs: Inputs, project: str, series: Sequence[Series], known: ChangeHistory
) -> str | None:
    """A hash of everything a benchmark's page depends on; None if its source has no hash.

    Which changes of a series are clear depends on all other series too.
    """
    source = inputs.sources.get(project)
    if source is None:
        return None
    found = [
        f"{change.id} {known.status(change)} {change.step.status} {known.because(change)}"
        f" {known.answer(change)}"
        for one in series
        for change in known.every(one)
    ]
    found += [known.not_analysed[one.id] for one in series if one.id in known.not_analysed]
    told = "\n".join((source, inputs.now[:10], inputs.records_folder, *inputs.only, *found))
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()


def _runs(
    inputs: Inputs, renderer: Renderer, holds: Holds, *, raw: bool
) -> Iterator[tuple[str, str]]:
    for done, (run, launches) in enumerate(inputs.records, start=1):
        stamp = inputs.stamps.get(run.id)
        if stamp is None or not holds(run_file(run), f"{stamp} {raw} {inputs.records_folder}"):
            file = jsonl.file_of(run, Path()).as_posix()
            own = [one for one in inputs.faults if file in one.file]
            page = run_page(run, launches, raw=raw, faults=own)
            yield page.address, renderer.page("run", page)
        inputs.progress("pages of runs", done, len(inputs.records))


def _hosts(
    inputs: Inputs, compared: Sequence[RunComparison], known: ChangeHistory, renderer: Renderer
) -> Iterator[tuple[str, str]]:
    for study in host_studies(inputs.records, inputs.calibrations):
        yield host_data(study.runs[-1].host.id), host_json(study, inputs.records_folder)
        page = host_page(study, now=inputs.now)
        yield page.address, renderer.page("host", page)
    for comparison in compared:
        pair = compare_page(
            comparison, now=inputs.now, calibrations=inputs.calibrations, known=known
        )
        yield (
            comparison_data(comparison.before, comparison.after),
            comparison_csv(comparison, inputs.records_folder),
        )
        yield pair.address, renderer.page("compare", pair)


def _about_all(
    studies: Sequence[ScenarioResult],
    inputs: Inputs,
    known: ChangeHistory,
    compared: Sequence[RunComparison],
    renderer: Renderer,
) -> Iterator[tuple[str, str, str]]:
    """Pages about all scenarios as (path, link text on the overview or empty, text)."""
    links = comparison_links(compared)
    if known.histories:
        page = triage_page(known, now=inputs.now, comparisons=links)
        words = "History: every change, and every series"
        yield "history.html", words, renderer.page("history", page)
        feed_ = renderer.page("feed", feed(known, now=inputs.now, records=inputs.records_folder))
        yield "feed.xml", "Feed of changes, Atom", feed_
        if known.changes or known.unclear:
            yield "data/changes.csv", "", changes_csv(known, inputs.records_folder)
    if (claims := claims_page(studies, now=inputs.now)) is not None:
        yield "claims.html", "Claims: published, and measured here", renderer.page("claims", claims)
    if (operators := operators_page(studies, inputs.profiles, now=inputs.now)) is not None:
        if imported := imported_csv(inputs.profiles):
            yield "data/imported.operators.csv", "", imported
        words = "Operators: where the time of a step goes"
        yield "operators.html", words, renderer.page("operators", operators)
