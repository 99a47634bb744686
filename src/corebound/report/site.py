"""Writes the site: the only module that reads templates and assets and writes pages."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

import msgspec

from corebound.analysis.change_history import ChangeHistory, build_change_history
from corebound.analysis.commit_comparison import CommitComparison, compare_imported_commits
from corebound.analysis.history_csv import history_csv
from corebound.analysis.host_records import group_by_host
from corebound.analysis.json_documents import hosts_document, json_file
from corebound.analysis.run_comparison import RunComparison, compare_runs, comparisons, recent_pairs
from corebound.analysis.scenario_result import ScenarioResult, findings
from corebound.analysis.selection import latest_results
from corebound.errors import InputError, report_os_errors
from corebound.present.compare import Compared
from corebound.present.tune import races, tune_document
from corebound.records import atomic_write, cache, jsonl
from corebound.records.history import Series
from corebound.records.run_record import Run
from corebound.records.traces import file_of, folder_of
from corebound.report import downloads, urls
from corebound.report.cache import PageCache, SeriesDigests, TemplateCache
from corebound.report.elements import Content
from corebound.report.history.columns import SharedMoments, points_document, script
from corebound.report.inputs import PageContext, SiteInputs
from corebound.report.navigation import Part, navigation_links, news_rule
from corebound.report.pages.benchmark import ImportedBenchmark, benchmark_page, benchmarks_of
from corebound.report.pages.claims import claims_page
from corebound.report.pages.compare import choice_groups, compare_page, comparisons_page
from corebound.report.pages.feed import feed
from corebound.report.pages.history import history_page
from corebound.report.pages.hosts import host_page, hosts_page
from corebound.report.pages.operators import operators_page
from corebound.report.pages.overview import overview_page
from corebound.report.pages.run import run_page
from corebound.report.pages.tune import tune_page
from corebound.report.render import Renderer
from corebound.report.scenario.history import listed_series
from corebound.report.scenario.page import scenario_page
from corebound.report.scenario.sides import compared_sides
from corebound.report.search_index import search_script
from corebound.report.sharing import badge, can_draw, share_image

INDEX = "index.html"
HOSTS_DATA = "data/hosts.json"
SHARE_IMAGE = "share.png"
AreFresh = Callable[[str, Sequence[str]], bool]


def render_pages(
    inputs: SiteInputs,
    results: Sequence[ScenarioResult],
    renderer: Renderer,
    are_fresh: AreFresh,
    *,
    traces: Mapping[str, str],
    raw: bool,
) -> Iterator[tuple[str, str | bytes]]:
    """Render every page and data file as (path within the site, text or bytes).

    The overview comes last, so that the pages it links to exist before it.

    Args:
        results: The latest result of each scenario in the records.
        are_fresh: Whether the site has these files, made from inputs with this key; such files
            are not made again.
        traces: For each launch whose trace is in the site, its path from the site's top.
        raw: Whether the records themselves are in the site.
    """
    # Comparisons come first, so that pairs that are not comparable are reported before any page is
    # written.
    asked = [(pair.before, pair.after) for pair in inputs.compared if pair.project is None]
    compared = comparisons(inputs.records, asked, inputs.past)
    build_history = partial(
        build_change_history,
        results=results,
        decisions=inputs.decisions,
        confirmations=inputs.confirmations,
        mapper=inputs.mapper,
        progress=partial(inputs.progress, "searching for changes in series"),
    )
    history = build_history(inputs.series, cache=inputs.cache)
    commits = [
        compare_imported_commits(pair.project, pair.before, pair.after, history)
        for pair in inputs.compared
        if pair.project is not None
    ]
    lost = {run for run, checked in inputs.verifications.items() if checked.answer == "lost"}
    context = PageContext(
        now=inputs.now,
        history=history,
        memory=build_history(inputs.memory),
        calibrations=inputs.calibrations,
        races=races(result for result, _ in inputs.tunings if result.run.id not in lost),
    )
    groups = choice_groups(
        inputs.records, history.histories, tuple(_scenario_points(results, history))
    )
    for name, reason in history.not_analysed.items():
        inputs.warn(f"{name}: its changes could not be analysed: {reason}")
    interleaved = [result for result in results if compared_sides(result) is not None]
    claims = claims_page(results)
    operators = operators_page(results, inputs.profiles, now=inputs.now)
    parts: dict[Part, object] = {
        "Scenarios": results,
        "History": history.histories,
        "Compare": groups or interleaved,
        "Claims": claims,
        "Operators": operators,
    }
    renderer.navigation = navigation_links(
        inputs.records, {name for name, part in parts.items() if part}
    )
    if inputs.address and can_draw():
        renderer.preview = f"{inputs.address.rstrip('/')}/{SHARE_IMAGE}"
    styles = (_source_folder("assets") / "site.css").read_text("utf-8")
    yield (
        "assets/site.css",
        re.sub(r"/\*.*?\*/\n?", "", styles, flags=re.DOTALL) + news_rule(history),
    )
    yield "data/search.js", search_script(results, history, inputs.records)
    yield from _scenarios(results, inputs, context, renderer, traces)
    yield from _benchmarks(inputs, history, renderer, are_fresh)
    yield from _runs(inputs, results, renderer, are_fresh, raw=raw)
    yield from _hosts(inputs, renderer)
    yield from _comparisons(
        inputs,
        context,
        renderer,
        are_fresh,
        compared=compared,
        commits=commits,
        groups=groups,
        interleaved=interleaved,
    )
    if history.histories:
        yield "history.html", renderer.page("history", history_page(context))
        yield "feed.xml", renderer.page("feed", feed(context, records=inputs.records_folder))
        if history.changes or history.unclear:
            yield "data/changes.csv", downloads.changes_csv(history, inputs.records_folder)
    if claims is not None:
        yield "claims.html", renderer.page("claims", claims)
    if operators is not None:
        if imported := downloads.imported_csv(inputs.profiles):
            yield "data/imported.operators.csv", imported
        yield "operators.html", renderer.page("operators", operators)
    tunings: list[tuple[str, str, str]] = []
    for result, files in inputs.tunings:
        loads = next((loads for loads in inputs.loads if loads.has(result)), None)
        checked = inputs.verifications.get(result.run.id)
        tuned = tune_page(result, files, loads=loads, verified=checked, now=inputs.now)
        yield tuned.data.removeprefix("../"), json_file(tune_document(result, files))
        yield tuned.address, renderer.page("tune", tuned)
        tunings.append((tuned.title, tuned.address, tuned.summary))
    overview = overview_page(
        results, context, tunings=tunings, records=inputs.records, faults=inputs.faults
    )
    if (image := share_image(overview.hero)) is not None:
        yield SHARE_IMAGE, image
    yield INDEX, renderer.page("overview", overview)


def _scenarios(
    results: Sequence[ScenarioResult],
    inputs: SiteInputs,
    context: PageContext,
    renderer: Renderer,
    traces: Mapping[str, str],
) -> Iterator[tuple[str, str]]:
    above = {launch: f"../{file}" for launch, file in traces.items()}
    for result in results:
        name = result.scenario.name
        scenario_findings = findings(result)
        page = scenario_page(
            result,
            context,
            findings=scenario_findings,
            records_file=jsonl.file_of(result.run, Path()).as_posix(),
            traces=above,
        )
        yield f"data/{name}.csv", downloads.cells_csv(result, inputs.records_folder)
        yield (
            f"data/{name}.json",
            downloads.cells_json(result, scenario_findings, inputs.records_folder),
        )
        if operators := downloads.operators_csv(result):
            yield f"data/{name}.operators.csv", operators
        if all_series := (
            *listed_series(result, context.history),
            *(listed_series(result, context.memory) if page.memory else ()),
        ):
            yield f"data/{name}.history.csv", history_csv(all_series)
            moments = SharedMoments(all_series)
            points = {**moments.document(), **points_document(all_series, moments)}
            yield urls.scenario_points_file(name), script(points)
        yield urls.badge_file(name), renderer.page("badge", badge(result, context.history))
        yield f"scenario/{name}.html", renderer.page("scenario", page)


def _scenario_points(results: Sequence[ScenarioResult], history: ChangeHistory) -> Iterator[str]:
    """The addresses of the points of all scenarios with a history."""
    for result in results:
        if listed_series(result, history):
            yield urls.scenario_points_file(result.scenario.name)


def _benchmarks(
    inputs: SiteInputs, history: ChangeHistory, renderer: Renderer, are_fresh: AreFresh
) -> Iterator[tuple[str, str]]:
    # Each benchmark has two files, its points and its page; those of a project share a third.
    benchmarks = [*benchmarks_of(history)]
    by_project: dict[str, list[Series]] = {}
    for benchmark in benchmarks:
        by_project.setdefault(benchmark.project, []).extend(benchmark.series)
    moments = {project: SharedMoments(all_series) for project, all_series in by_project.items()}
    for project, shared in moments.items():
        names = [each.name for each in benchmarks if each.project == project]
        slugs = [urls.benchmark_slug(project, name) for name in names]
        yield urls.moments_file(project), script({**shared.document(), "benchmarks": slugs})
    digests = SeriesDigests()
    stale: list[tuple[tuple[str, str], ImportedBenchmark]] = []
    for benchmark in benchmarks:
        files = (
            urls.points_file(benchmark.project, benchmark.name),
            urls.benchmark_file(benchmark.project, benchmark.name),
        )
        key = _benchmark_key(inputs, benchmark, moments[benchmark.project], digests)
        if not are_fresh(f"{renderer.shared} {key}", files):
            stale.append((files, benchmark))

    def render(item: tuple[tuple[str, str], ImportedBenchmark]) -> list[tuple[str, str]]:
        files, benchmark = item
        points = points_document(
            benchmark.series,
            moments[benchmark.project],
            history=history,
            moments_file=PurePosixPath(urls.moments_file(benchmark.project)).name,
        )
        texts = (script(points), renderer.page("benchmark", benchmark_page(benchmark)))
        return list(zip(files, texts, strict=True))

    # The first page is made in this process: that compiles the templates once, instead of in each
    # process that makes the others.
    every = itertools.chain(map(render, stale[:1]), inputs.mapper(render, stale[1:]))
    for done, texts in enumerate(every, start=1):
        yield from texts
        inputs.progress("pages of benchmarks", done, len(stale))


def _benchmark_key(
    inputs: SiteInputs, benchmark: ImportedBenchmark, moments: SharedMoments, digests: SeriesDigests
) -> str:
    """A hash of everything a benchmark's page and points depend on.

    Which changes of a series are clear depends on all other series too.
    """
    history = benchmark.history
    parts = [
        inputs.records_folder,
        *map(repr, history.environments.get(benchmark.project, {}).items()),
    ]
    parts += map(digests.of, (*benchmark.series, *benchmark.silent))
    for series in benchmark.series:
        parts += [
            moments.digest(series.points.moments),
            str(series.id in history.retired_series),
            history.not_analysed.get(series.id, ""),
        ]
        parts += [
            f"{change.id} {history.assessed[change.id].status} {change.change_point.status}"
            f" {change.clear} {change.back_is_clear} {history.because(change)}"
            f" {history.answer(change)}"
            for change in history.all_changes_of(series)
        ]
    return cache.digest(*(part.encode() for part in parts))


def _runs(
    inputs: SiteInputs,
    results: Sequence[ScenarioResult],
    renderer: Renderer,
    are_fresh: AreFresh,
    *,
    raw: bool,
) -> Iterator[tuple[str, str]]:
    for done, (run, launches) in enumerate(inputs.records, start=1):
        stamp = inputs.stamps.get(run.id)
        key = f"{stamp} {raw} {inputs.records_folder} {renderer.shared}"
        if stamp is None or not are_fresh(key, (urls.run_file(run),)):
            file = jsonl.file_of(run, Path()).as_posix()
            faults = [fault for fault in inputs.faults if file in fault.file]
            own = [result for result in results if result.run.id == run.id]
            page = run_page(run, launches, results=own, raw=raw, faults=faults)
            yield urls.run_file(run), renderer.page("run", page)
        inputs.progress("pages of runs", done, len(inputs.records))


def _hosts(inputs: SiteInputs, renderer: Renderer) -> Iterator[tuple[str, str]]:
    hosts = group_by_host(inputs.records, inputs.calibrations, inputs.recorded)
    if len(hosts) > 1:
        overview = hosts_page(hosts, now=inputs.now, comparison=inputs.hosts)
        yield "hosts.html", renderer.page("hosts", overview)
        if inputs.hosts is not None:
            yield HOSTS_DATA, json_file(hosts_document(inputs.hosts))
    for host in hosts:
        page = host_page(host, now=inputs.now)
        yield (
            urls.data_of(urls.host_file(page.host.id), "json"),
            downloads.host_json(host, inputs.records_folder),
        )
        yield urls.host_file(page.host.id), renderer.page("host", page)


def _comparisons(
    inputs: SiteInputs,
    context: PageContext,
    renderer: Renderer,
    are_fresh: AreFresh,
    *,
    compared: Sequence[RunComparison],
    commits: Sequence[CommitComparison],
    groups: tuple[Content, ...],
    interleaved: Sequence[ScenarioResult],
) -> Iterator[tuple[str, str]]:
    """The comparisons of runs and of commits, and the page to choose two on.

    Comparisons of the hosts' other recent runs show no histories: they depend on nothing after the
    later run, and are not made again.
    """

    def files(pair: Compared, known: PageContext) -> Iterator[tuple[str, str]]:
        page, folder = compare_page(pair, known), inputs.records_folder
        yield (
            urls.data_of(page.address),
            downloads.comparison_csv(pair, folder)
            if isinstance(pair, RunComparison)
            else downloads.commits_csv(pair),
        )
        yield page.address, renderer.page("compare", page)

    every: tuple[Compared, ...] = (*compared, *commits)
    for comparison in every:
        yield from files(comparison, context)
    if not groups and not interleaved:
        return
    without_history = PageContext(now=inputs.now, calibrations=inputs.calibrations)
    pairs = [(each.before, each.after) for each in compared]
    for before, after in recent_pairs(inputs.records):
        runs = before[0], after[0]
        if runs in pairs:
            continue
        key = _pair_key(inputs, runs, renderer)
        address = urls.comparison_file(*runs)
        if key is None or not are_fresh(key, (urls.data_of(address), address)):
            try:
                pair = compare_runs(before, after, inputs.past)
            except InputError:
                continue  # measured in another environment
            yield from files(pair, without_history)
        pairs.append(runs)
    hosts = len({run.host.id for run, _ in inputs.records})
    page = comparisons_page(pairs, commits, groups, hosts=hosts, interleaved=interleaved)
    yield "compare.html", renderer.page("comparisons", page)


def _pair_key(inputs: SiteInputs, pair: tuple[Run, Run], renderer: Renderer) -> str | None:
    """A hash of everything that a comparison page without histories depends on.

    None if a run's records have no stamp. Earlier runs of the host show how much runs differ.
    """
    before, after = pair
    if before.id not in inputs.stamps or after.id not in inputs.stamps:
        return None
    earlier = sorted(
        f"{run.id} {inputs.stamps.get(run.id)}"
        for run, _ in inputs.records
        if run.host.id == after.host.id and run.started_at <= after.started_at
    )
    noise = [f"{each.run} {each.at}" for each in inputs.calibrations]
    site = (inputs.records_folder, renderer.shared)
    parts = (before.id, after.id, *site, *earlier, *noise)
    return cache.digest(*(part.encode() for part in parts))


# Hidden, so that it is not published.
FILE_LIST = ".corebound-files.json"


class SiteDirectory:
    """Writes files into a folder, and finally removes the files of the previous site.

    A list in the folder names the previous files, each with a hash. Files that somebody else added
    or replaced are kept.

    Attributes:
        at: The path of the folder.
    """

    def __init__(self, at: Path) -> None:
        """Use this folder; it is created with the first file."""
        self.at = at
        self._before: dict[str, str] = {}
        with contextlib.suppress(OSError, msgspec.DecodeError):
            data = atomic_write.read(at / FILE_LIST)
            self._before = msgspec.json.decode(data, type=dict[str, str])
        self._now: dict[str, str] = {}

    def put(self, name: str, data: bytes) -> None:
        """Write a file atomically, unless it already has this content.

        Raises:
            OSError: it cannot be written.
        """
        _write_if_changed(self.at / name, data)
        self._now[name] = cache.digest(data)

    def keep(self, name: str) -> None:
        """Keep an existing file that is up to date.

        Raises:
            OSError: it cannot be read.
        """
        self._now[name] = self._before.get(name) or _digest(self.at / name)

    def is_intact(self) -> bool:
        """Whether every file of the previous site is there, unchanged."""
        return bool(self._before) and all(map(self._is_as_put, self._before))

    def close(self) -> None:
        """Remove the files that the previous site had and this one does not.

        Raises:
            OSError: a file cannot be removed.
        """
        for name in sorted(self._before.keys() - self._now.keys()):
            if self._is_as_put(name):
                self._remove(name)
        # The list is written last, so that after an interruption the files to remove are still
        # known.
        _write_if_changed(self.at / FILE_LIST, msgspec.json.encode(self._now, order="sorted"))

    def _remove(self, name: str) -> None:
        file = self.at / name
        file.unlink()
        for folder in file.relative_to(self.at).parents[:-1]:
            # A folder with other files in it is not an error.
            with contextlib.suppress(OSError):
                (self.at / folder).rmdir()

    def _is_as_put(self, name: str) -> bool:
        """Whether a file is in the folder and unchanged.

        The list is not trusted, because it may be from anybody.
        """
        file = self.at / name
        try:
            if file.is_symlink() or not file.resolve().is_relative_to(self.at.resolve()):
                return False
            return file.is_file() and _digest(file) == self._before[name]
        except (OSError, ValueError):
            return False


def _write_if_changed(file: Path, data: bytes) -> None:
    with contextlib.suppress(FileNotFoundError):
        if atomic_write.read(file) == data:
            return
    atomic_write.put(file, data)


def _digest(file: Path) -> str:
    return cache.digest(atomic_write.read(file))


def write(
    inputs: SiteInputs, out: Path, *, records: Path | None = None, cache_folder: Path | None = None
) -> Path:
    """Write the site: an overview; pages for scenarios, runs, hosts and histories; the assets.

    The same records and timestamp give the same bytes, whatever site was there before. Each file is
    written atomically, and unchanged files are left alone. Files of the previous site that are not
    part of this one are removed.

    Args:
        out: The folder of the site; created if it does not exist.
        records: The folder of records, for copies of them and of traces; None: no copies.
        cache_folder: The cache folder of this user; None: no cache.

    Returns:
        The path of the overview.

    Raises:
        InputError: the site cannot be written there, or requested runs or commits are not
            comparable.
        ScenarioFaults: this version cannot read a recorded scenario.
    """
    with report_os_errors(
        "the site cannot be written",
        where=out,
        fix="Choose another folder with --out, or make this one writable.",
    ):
        runs = [run for run, _ in inputs.records]
        results = latest_results(inputs.records)
        folder = SiteDirectory(out)
        traces: dict[str, str] = {}
        raw = False
        if records is not None:
            traces = _copy_traces(results, records, folder)
            raw = _copy_records(runs, records, folder)
        page_cache = PageCache(out, records, _source_folder("templates"))

        def are_fresh(key: str, names: Sequence[str]) -> bool:
            # Every file is checked, so that each is remembered under its key if it is made.
            fresh = [name for name in names if page_cache.is_fresh(name, key)]
            for name in fresh:
                folder.keep(name)
            return len(fresh) == len(names)

        renderer = _renderer(inputs, cache_folder)
        for name, text in render_pages(
            inputs, results, renderer, are_fresh, traces=traces, raw=raw
        ):
            data = text.encode() if isinstance(text, str) else text
            folder.put(name, data)
            page_cache.record(name, data)
        page_cache.close()
        for asset in sorted(_source_folder("assets").iterdir()):
            if asset.name != "site.css":  # a page: it says what is new
                folder.put(f"assets/{asset.name}", asset.read_bytes())
        folder.close()
    return out / INDEX


def rehearse(inputs: SiteInputs) -> None:
    """Render every page and write none, to see which part of the inputs raises an error."""
    results = latest_results(inputs.records)
    pages = render_pages(inputs, results, _renderer(inputs), lambda *_: False, traces={}, raw=False)
    for _ in pages:
        pass


def _renderer(inputs: SiteInputs, cache_folder: Path | None = None) -> Renderer:
    return Renderer(
        {
            path.name: path.read_text("utf-8")
            for path in sorted(_source_folder("templates").iterdir())
        },
        now=inputs.now,
        records=inputs.records_folder,
        only=inputs.only,
        bytecode_cache=None if cache_folder is None else TemplateCache(cache_folder),
    )


def _copy_records(runs: Sequence[Run], records: Path, folder: SiteDirectory) -> bool:
    """Copy each run's records into the site, gzipped; return whether all of them are there."""
    is_complete = True
    for run in runs:
        source, name = jsonl.file_of(run, records), urls.raw_file(run)
        copy = folder.at / name
        if not source.is_file():
            is_complete = False
        elif copy.is_file() and copy.stat().st_mtime_ns > source.stat().st_mtime_ns:
            # The copy is newer than the records, so it is up to date.
            folder.keep(name)
        else:
            folder.put(name, gzip.compress(source.read_bytes(), mtime=0))
    return is_complete


def _copy_traces(
    results: Sequence[ScenarioResult], records: Path, folder: SiteDirectory
) -> dict[str, str]:
    """Copy the existing traces into the site; return the path of each by launch."""
    by_name: dict[str, str] = {}
    for result in results:
        trace_folder = folder_of(jsonl.file_of(result.run, records))
        for launch in result.profiles:
            if launch.trace and (file := file_of(trace_folder, launch.id)).is_file():
                by_name[launch.id] = urls.trace_file(launch.id)
                folder.put(by_name[launch.id], file.read_bytes())
    return by_name


def sources() -> Iterator[bytes]:
    """The content of every template and asset."""
    for kind in ("templates", "assets"):
        for path in sorted(_source_folder(kind).iterdir()):
            yield path.read_bytes()


def _source_folder(kind: str) -> Path:
    """The folder of templates or assets: beside this module if installed, else in the checkout."""
    path = Path(__file__).resolve().parent
    installed = path / kind
    return installed if installed.is_dir() else path.parents[2] / "reports" / kind
