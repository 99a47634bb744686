"""How soon a reader sees a page, and what has to be loaded for it: pages of a large suite.

    python -m benchmarks.paint [--scenarios N] [--loads N]

One scenario of two cells is really measured; the suite has it under so many names, each with
a history of so many nights, their figures a little apart. Chromium opens the pages from their
files, each time in a context of its own with nothing kept; the first paint is the browser's
own entry (Paint Timing, `first-contentful-paint`), counted from when the page was asked for.
Beside it stands the processor time of the page's main thread until it was loaded, which other
work on the host disturbs less.
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
# Standard deviation of a night, as a logarithm.
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


class Painted(Struct, frozen=True, kw_only=True):
    """A page.

    Attributes:
        name: What it is.
        first_paints_ms: Of each load.
        thread_ms: Processor time of the page's main thread until it was loaded, of each load.
        packed_bytes: The page with its style and script, gzipped; what zooming loads is not in.
        nodes: Elements of the page.
    """

    name: str
    first_paints_ms: tuple[float, ...]
    thread_ms: tuple[float, ...]
    packed_bytes: int
    nodes: int


def missing() -> str | None:
    """What cannot be measured without, and how to get it; None where all is there."""
    if importlib.util.find_spec("playwright") is None:
        return "first paint: not measured, playwright is not installed: pip install playwright"
    if _chromium() is None:
        return "first paint: not measured, there is no Chromium: apt-get install chromium"
    return None


def _chromium() -> str | None:
    return shutil.which("chromium")


def measure(scenarios: int = SCENARIOS, loads: int = LOADS) -> tuple[Painted, Painted]:
    """The overview and one scenario's page of a suite of so many scenarios; needs a browser."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run, launches = recorded(folder)
        records, series = suite(run, launches, scenarios)
        site.write(SiteInputs(records=[records], now=NOW, series=series), folder / "site")
        made = folder / "site"
        return (
            painted(f"overview of {scenarios} scenarios", made, "index.html", loads),
            painted("a scenario's page", made, "scenario/sums-0.html", loads),
        )


def recorded(folder: Path) -> tuple[Run, tuple[Launch, ...]]:
    """A real run of the scenario, and its launches."""
    (folder / "sums.yaml").write_text(SCENARIO, encoding="utf-8")
    (folder / "sums.py").write_text(WORKLOAD, encoding="utf-8")
    command = (sys.executable, "-m", "corebound", "run", "sums.yaml", "--unlocked", "--json")
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True)
    stored = jsonl.read(folder / json.loads(done.stdout)["records"])
    return stored.run, tuple(stored.launches)


def suite(
    run: Run, launches: Sequence[Launch], scenarios: int
) -> tuple[tuple[Run, tuple[Launch, ...]], tuple[Series, ...]]:
    """The run as if it had so many scenarios, and the nights before it."""
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
        replace(one, points=HistoryPoints.of(_nights(one.points[0], noise)))
        for one in series_of_run(whole, every)
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


def painted(name: str, folder: Path, address: str, loads: int) -> Painted:
    """Open a page of a site so many times, and once before that is not counted."""
    page = folder / address
    # Of the extra that tests need: where it is not there, all else here can still be loaded.
    driver = importlib.import_module("playwright.sync_api")
    paints_ms, thread_ms, nodes = [], [], 0
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=list(_ARGUMENTS))
        for _ in range(loads + 1):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            opened = context.new_page()
            asked = context.new_cdp_session(opened)
            asked.send("Performance.enable", {"timeDomain": "threadTicks"})
            opened.goto(page.as_uri())
            told = {one["name"]: one["value"] for one in asked.send(_METRICS)["metrics"]}
            thread_ms.append(1000 * float(told["ThreadTime"]))
            paints_ms.append(float(opened.evaluate(_PAINTED_MS)))
            nodes = int(opened.evaluate("document.querySelectorAll('*').length"))
            context.close()
        browser.close()
    loaded = (page, folder / "assets/site.css", folder / "assets/site.js")
    return Painted(
        name=name,
        first_paints_ms=tuple(paints_ms[1:]),
        thread_ms=tuple(thread_ms[1:]),
        packed_bytes=sum(len(gzip.compress(file.read_bytes())) for file in loaded),
        nodes=nodes,
    )


def table(pages: Sequence[Painted]) -> None:
    """Print what was seen, with what is wanted of it."""
    print(f"{'':30}{'first paint: median':>20}{'most':>8}{'CPU':>9}{'loaded':>12}{'elements':>10}")
    for one in pages:
        print(
            f"{one.name:30}{statistics.median(one.first_paints_ms):>17.0f} ms"
            f"{max(one.first_paints_ms):>5.0f} ms{statistics.median(one.thread_ms):>6.0f} ms"
            f"{one.packed_bytes / 1000:>9.1f} kB{one.nodes:>10,}"
        )
    print("wanted: overview under 300 ms and 60 kB, scenario under 120 kB, gzipped, without zoom")


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="how soon pages of a large suite are seen")
    parser.add_argument("--scenarios", type=int, default=SCENARIOS)
    parser.add_argument("--loads", type=int, default=LOADS)
    told = parser.parse_args()
    if why := missing():
        raise SystemExit(why)
    table(measure(told.scenarios, told.loads))


if __name__ == "__main__":
    main()
