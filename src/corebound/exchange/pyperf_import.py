"""Files of pyperf, in: each benchmark a series of one point, each of its runs a launch.

A run of pyperf is a process, so it gives one figure, the median of its values, and the
benchmark their geometric mean with an interval: the arithmetic of corebound's own records.

Source: pyperf 2, its JSON format 1.0.
"""

from __future__ import annotations

import gzip
import math
import re
import statistics
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from corebound.exchange.foreign_json import document
from corebound.exchange.pyperf_command import command_of
from corebound.exchange.reading import Unreadable, clean
from corebound.model.missing import INCOMPARABLE
from corebound.model.points import Point, Points
from corebound.model.run import Commit
from corebound.model.series import Series
from corebound.stats.interval import geometric_mean, geometric_mean_interval
from corebound.store.validate import moment

MARGIN = 0.02
_GZIP = b"\x1f\x8b"
_UNITS = {"second": ("ns", 1e9), "byte": ("bytes", 1.0), "integer": ("count", 1.0)}
_NAMED = re.compile(r"^(?P<scenario>[^\[\]]+)\[(?P<cell>.+)\]$")
# What may change a figure besides the commit, by pyperf's names of it.
_CIRCUMSTANCES = (
    "cpu_model_name", "platform", "python_implementation", "python_version", "python_compiler",
    "corebound_scenario_sha256",
)  # fmt: skip
_EXPORT = "Export it from pyperf again, with its metadata."


def read(data: bytes, project: str) -> tuple[Series, ...]:
    """Every benchmark of a file, packed by gzip or not.

    Raises:
        Unreadable: it is damaged, of another format, or does not tell when it was measured.
    """
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise Unreadable(f"its gzip is damaged: {error}.", "Fetch it again.") from None
    told = document(data)
    if not isinstance(told, dict) or not told.get("benchmarks"):
        raise Unreadable("it is no file of pyperf.", "Name one that `pyperf -o` wrote.")
    if told.get("version") != "1.0":
        raise Unreadable(
            f"its format is {told.get('version')!r}, and '1.0' is known.",
            "Write it with pyperf 1.0 or later: `pyperf convert`.",
        )
    try:
        common = told.get("metadata") or {}
        return tuple(_series(one, common, project) for one in told["benchmarks"])
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"it is damaged: {error!r}.", "Fetch it again.") from None


def _series(benchmark: Mapping[str, Any], common: Mapping[str, Any], project: str) -> Series:
    shared = {**common, **(benchmark.get("metadata") or {})}
    runs = [(run, {**shared, **(run.get("metadata") or {})}) for run in benchmark["runs"]]
    # Runs without values calibrated the others.
    measured = [(run, about) for run, about in runs if run.get("values")]
    if not runs:
        raise Unreadable("a benchmark has no run.", _EXPORT)
    about = (measured or runs)[0][1]
    name = clean(str(about.get("name", "unnamed")))
    unit, scale = _UNITS[str(about.get("unit", "second"))]
    named = _NAMED.match(name)
    host = clean(str(about.get("corebound_host") or about.get("hostname") or "unnamed"))
    return Series(
        project=project,
        host=host,
        host_name=clean(str(about.get("hostname") or host)),
        scenario=named["scenario"] if named else name,
        title=clean(str(about.get("description") or name)),
        cell=named["cell"] if named else "default",
        unit=unit,
        margin=MARGIN,
        reproduce=command_of(about),
        points=Points.of([_point([run["values"] for run, _ in measured], scale, about)]),
    )


def _point(runs: Sequence[Sequence[float]], scale: float, about: Mapping[str, Any]) -> Point:
    launches = tuple(float(statistics.median(map(float, values))) * scale for values in runs)
    usable = bool(launches) and all(0 < one < math.inf for one in launches)
    interval = geometric_mean_interval(launches) if usable else None
    bounded = interval is not None and math.isfinite(interval.high)
    return Point(
        at=_at(about),
        run=_run_id(about),
        commit=_commit(about),
        figure=geometric_mean(launches) if usable else None,
        bounds=(interval.low, interval.high) if interval and bounded else None,
        launches=launches if usable else (),
        missing=None if usable else _missing(launches),
        circumstances=tuple(
            (name, clean(str(about[name]))) for name in _CIRCUMSTANCES if name in about
        ),
    )


def _missing(launches: Sequence[float]) -> str:
    return INCOMPARABLE if launches else "no run has a value"


def _at(about: Mapping[str, Any]) -> str:
    """`2026-01-02 03:04:05.678`, local time of who measured: pyperf keeps no zone."""
    date = str(about.get("date", ""))
    at = f"{date[:10]}T{date[11:19]}Z"
    try:
        moment("date", at)
    except ValueError:
        raise Unreadable("it does not tell when it was measured.", _EXPORT) from None
    return at


def _run_id(about: Mapping[str, Any]) -> str | None:
    return clean(str(about["corebound_run"])) if "corebound_run" in about else None


def _commit(about: Mapping[str, Any]) -> Commit | None:
    """As pyperformance and corebound put it there."""
    sha = about.get("commit_id")
    if not isinstance(sha, str) or not sha.isalnum():
        return None
    return Commit(
        sha=sha,
        subject=clean(str(about.get("commit_subject", ""))),
        committed_at=clean(str(about.get("commit_date") or _at(about))),
        dirty="corebound_dirty" in about,
        tree=clean(str(about["corebound_tree"])) if "corebound_tree" in about else None,
    )
