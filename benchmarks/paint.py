"""When pages are painted and interactive, and their size.

    python -m benchmarks.paint [--scenarios N] [--loads N] [--site FOLDER [PAGE ...]]

With `--site`, these pages of a site that exists are opened, by default its overview and history.
Otherwise one scenario of two cells is measured. The suite contains it under many names, each with a
history of many nights with slightly different values.

Chromium opens the pages from disk, each time in a new context without a cache. The first paint is
the browser's own entry (Paint Timing, `first-contentful-paint`), counted from the request. A page
is interactive when its DOM is complete and the last long task has ended (50 ms or more, Long Tasks)
that began within half a second of its loading. The CPU time of the page's main thread until it is
loaded is shown as well, because other work on the host disturbs it less.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import importlib.util
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from corebound.records import jsonl
from corebound.records.history import HistoryPoint, HistoryPoints, Series
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.report import site
from corebound.report.inputs import SiteInputs
from corebound.stats.history.series import series_of_run

SCENARIOS = 500
NIGHTS = 40
LOADS = 10
NOW = "2026-01-01T00:00:00+00:00"
# Standard deviation of the logarithm between nights.
OFF = 0.02

SCENARIO = """\
schema: 1
name: sums
title: A sum of numbers
question: What does a page show of a small scenario?
workload: sums:setup
environment: host
matrix: {binding: [none, one-cpu]}
baseline: {binding: none}
measure: {iterations: 200, launches: {min: 6, max: 6}}
"""
WORKLOAD = "def setup():\n    return lambda: sum(range(2000))\n"
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
_METRICS = "Performance.getMetrics"
_PAINTED_MS = """() => new Promise(done => new PerformanceObserver(seen => {
    const one = seen.getEntriesByName('first-contentful-paint')[0];
    if (one) done(one.startTime);
}).observe({type: 'paint', buffered: true}))"""
_OBSERVE_TASKS = """window.longTasks = [];
new PerformanceObserver(seen => longTasks.push(...seen.getEntries()))
    .observe({type: 'longtask', buffered: true});"""
_INTERACTIVE_MS = """() => new Promise(done => setTimeout(() => {
    const [loaded] = performance.getEntriesByType('navigation');
    const ends = longTasks.map(task => task.startTime + task.duration);
    done(Math.max(loaded.domContentLoadedEventEnd, ...ends));
}, 500))"""


class LoadedPage(Struct, frozen=True, kw_only=True):
    """Measurements of a page.

    Attributes:
        name: A description of the page.
        first_paints_ms: The first paint of each load.
        interactive_ms: For each load, when the page was interactive.
        thread_ms: For each load, the CPU time of the main thread until the page is loaded.
        packed_bytes: The page with its style and script, gzipped, without data for zooming.
        nodes: The number of elements.
    """

    name: str
    first_paints_ms: tuple[float, ...]
    interactive_ms: tuple[float, ...]
    thread_ms: tuple[float, ...]
    packed_bytes: int
    nodes: int


def missing() -> str | None:
    """The missing requirement and how to install it; None if nothing is missing."""
    if importlib.util.find_spec("playwright") is None:
        return "first paint: not measured, playwright is not installed: pip install playwright"
    if _chromium() is None:
        return "first paint: not measured, there is no Chromium: apt-get install chromium"
    return None


def _chromium() -> str | None:
    return shutil.which("chromium")


def measure(scenarios: int = SCENARIOS, loads: int = LOADS) -> tuple[LoadedPage, LoadedPage]:
    """Measure the overview and a scenario's page of a suite of this size; needs a browser."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run, launches = run_scenario(folder)
        records, series = suite(run, launches, scenarios)
        site.write(SiteInputs(records=[records], now=NOW, series=series), folder / "site")
        pages = folder / "site"
        return (
            load_page(f"overview of {scenarios} scenarios", pages, "index.html", loads),
            load_page("a scenario's page", pages, "scenario/sums-0.html", loads),
        )


def run_scenario(folder: Path) -> tuple[Run, tuple[Launch, ...]]:
    """Run the scenario; returns the run and its launches."""
    (folder / "sums.yaml").write_text(SCENARIO, encoding="utf-8")
    (folder / "sums.py").write_text(WORKLOAD, encoding="utf-8")
    command = (sys.executable, "-m", "corebound", "run", "sums.yaml", "--unlocked", "--json")
    completed = subprocess.run(command, cwd=folder, check=True, capture_output=True)
    stored = jsonl.read(folder / json.loads(completed.stdout)["records"])
    return stored.run, tuple(stored.launches)


def suite(
    run: Run, launches: Sequence[Launch], scenarios: int
) -> tuple[tuple[Run, tuple[Launch, ...]], tuple[Series, ...]]:
    """Make a run with this many copies of the scenario, and its history."""
    (source,) = run.scenarios
    names = [f"sums-{number}" for number in range(scenarios)]
    sources = tuple(
        replace(source, document={**source.document, "name": name, "title": f"Sums, number {at}"})
        for at, name in enumerate(names)
    )
    every = tuple(
        replace(
            launch,
            id=f"{name}-{launch.id}",
            cell=replace(launch.cell, scenario=name),
        )
        for name in names
        for launch in launches
    )
    whole = replace(run, scenarios=sources)
    noise = np.random.default_rng(1)
    past = tuple(
        replace(series, points=HistoryPoints.of(_nights(series.points[0], noise)))
        for series in series_of_run(whole, every)
    )
    return (whole, every), past


def _nights(point: HistoryPoint, noise: np.random.Generator) -> Iterator[HistoryPoint]:
    for night in range(NIGHTS):
        off = float(noise.lognormal(0, OFF))
        yield replace(
            point,
            at=f"2025-{1 + night // 28:02}-{1 + night % 28:02}T02:00:00Z",
            value=None if point.value is None else point.value * off,
            bounds=None if point.bounds is None else (point.bounds[0] * off, point.bounds[1] * off),
        )


def load_page(name: str, folder: Path, address: str, loads: int) -> LoadedPage:
    """Load a page this many times, after a first load that does not count."""
    page = folder / address
    # Imported here, because it is installed only for tests.
    driver = importlib.import_module("playwright.sync_api")
    paints_ms, interactive_ms, thread_ms, nodes = [], [], [], 0
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=list(_ARGUMENTS))
        for _ in range(loads + 1):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            opened = context.new_page()
            opened.add_init_script(_OBSERVE_TASKS)
            session = context.new_cdp_session(opened)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            opened.goto(page.as_uri())
            metrics = {
                metric["name"]: metric["value"] for metric in session.send(_METRICS)["metrics"]
            }
            thread_ms.append(1000 * float(metrics["ThreadTime"]))
            paints_ms.append(float(opened.evaluate(_PAINTED_MS)))
            interactive_ms.append(float(opened.evaluate(_INTERACTIVE_MS)))
            nodes = int(opened.evaluate("document.querySelectorAll('*').length"))
            context.close()
        browser.close()
    loaded = (page, folder / "assets/site.css", folder / "assets/site.js")
    return LoadedPage(
        name=name,
        first_paints_ms=tuple(paints_ms[1:]),
        interactive_ms=tuple(interactive_ms[1:]),
        thread_ms=tuple(thread_ms[1:]),
        packed_bytes=sum(len(gzip.compress(file.read_bytes())) for file in loaded),
        nodes=nodes,
    )


def table(pages: Sequence[LoadedPage]) -> None:
    """Print the measurements and their targets."""
    print(
        f"{'':30}{'first paint: median':>20}{'max':>8}{'interactive':>14}{'CPU':>9}{'loaded':>12}"
        f"{'elements':>10}"
    )
    for page in pages:
        print(
            f"{page.name[-29:]:30}{statistics.median(page.first_paints_ms):>17.0f} ms"
            f"{max(page.first_paints_ms):>5.0f} ms"
            f"{statistics.median(page.interactive_ms):>11.0f} ms"
            f"{statistics.median(page.thread_ms):>6.0f} ms"
            f"{page.packed_bytes / 1000:>9.1f} kB{page.nodes:>10,}"
        )
    print("targets: overview under 300 ms and 60 kB, scenario under 120 kB, gzipped, without zoom;")
    print("every page interactive within 500 ms")


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="First paint and size of pages of a large suite.")
    parser.add_argument("--scenarios", type=int, default=SCENARIOS, help="size of the suite")
    parser.add_argument("--loads", type=int, default=LOADS, help="loads of each page")
    parser.add_argument("--site", type=Path, help="folder of a site; default: make one")
    parser.add_argument(
        "pages", nargs="*", default=["index.html", "history.html"], help="pages of --site"
    )
    options = parser.parse_args()
    if reason := missing():
        raise SystemExit(reason)
    if options.site is None:
        table(measure(options.scenarios, options.loads))
    else:
        table([load_page(page, options.site, page, options.loads) for page in options.pages])


if __name__ == "__main__":
    main()
