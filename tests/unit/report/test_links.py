"""Every link of a site leads to a file of it, and every fragment to an element."""

import posixpath
import random
import re
from html import unescape
from urllib.parse import unquote

import pytest
from msgspec.structs import replace

from corebound.records.history import HistoryPoints, Series
from support.build import a_point, a_series
from support.report_sample import (
    COMMITS,
    a_sample_of_two_modes,
    a_serving_sample,
    pages_of,
    sample_calibrations,
    sample_history,
    sample_imports,
    sample_records,
    small_nights,
)

_LINK = re.compile(r'(?:href|data-href)="([^"]*)"')
_ID = re.compile(r'\bid="([^"]*)"')


def dead_links(pages: dict[str, str]) -> list[str]:
    """Links of pages to files or fragments that do not exist: `page → address`."""
    ids = {name: set(_ID.findall(text)) for name, text in pages.items() if name.endswith(".html")}
    dead = []
    for name in ids:
        for address in map(unescape, _LINK.findall(pages[name])):
            path, _, fragment = address.partition("#")
            if re.match(r"[a-z]+:", path) or path.endswith((".css", ".js", ".png", ".svg")):
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(path)))
            target = target if path else name
            if target not in pages or (fragment and fragment not in ids.get(target, ())):
                dead.append(f"{name} → {address}")
    return dead


def changing(points: int, noise: random.Random) -> HistoryPoints:
    """Points of a level that doubles or halves four times, each time at another commit."""
    steps = noise.sample(range(noise.randrange(12, 24), points - 12, 12), 4)
    level, values = 1e6, []
    for day in range(points):
        level *= noise.choice((0.5, 2.0)) if day in steps else 1
        values.append(level * noise.lognormvariate(0, 0.01))
    return HistoryPoints.of(a_point(value, day=day) for day, value in enumerate(values))


def a_long_history() -> tuple[Series, ...]:
    """Series of our own scenario and of a project, one of whose benchmarks has very many."""
    noise = random.Random(1)  # no secret
    run, _ = small_nights(1)[0]
    own = [
        a_series([], scenario="a-scenario", host=run.host.id, cell=f"binding={mode}")
        for mode in ("none", "one-cpu")
    ]
    changed = [changing(90, noise) for _ in range(60)]
    names = [("wide", at) for at in range(150)] + [(f"time_{at % 20}", at) for at in range(60)]
    return (
        *(replace(series, points=points) for series, points in zip(own, changed, strict=False)),
        *(
            a_series(
                [],
                project="trees",
                scenario=name,
                cell=f"n={at}",
                points=changed[at % len(changed)],
            )
            for name, at in names
        ),
    )


def test_every_link_of_the_sample_site_leads_somewhere() -> None:
    pages = pages_of(
        [*sample_records(), a_serving_sample(), a_sample_of_two_modes()],
        series=sample_history(),
        profiles=sample_imports(),
        calibrations=sample_calibrations(),
        compared=[COMMITS],
    )

    assert dead_links(pages) == []


def test_every_link_of_a_long_history_leads_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corebound.report.pages.benchmark._MOST_ROWS", 100)

    pages = pages_of(small_nights(1), series=a_long_history())

    assert pages["history.html"].count('id="commit-') > 20
    assert dead_links(pages) == []
