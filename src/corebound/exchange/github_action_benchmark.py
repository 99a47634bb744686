"""Import the history that github-action-benchmark keeps (`data.js`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from corebound.exchange.asv.results import more_is_better
from corebound.exchange.reading import Unreadable, clean, parse_json, reporting_damage
from corebound.exchange.result_files import Context, commit_of, key_of, point_of, series_of, utc
from corebound.records.history import HistoryPoint, Series

_ASSIGNMENT = re.compile(rb"\s*window\.BENCHMARK_DATA\s*=\s*")
# A time of one iteration or operation: `ns/iter`, `us/op`, `ms`.
_TIME = re.compile(r"(ns|us|µs|μs|ms|s|sec|seconds?)(?:/(?:iter|op|operation))?", re.IGNORECASE)
_NS = {"n": 1.0, "u": 1e3, "µ": 1e3, "μ": 1e3, "m": 1e6, "s": 1e9}
# The tools whose values are rates.
_RATES = {"benchmarkjs", "pytest", "customBiggerIsBetter"}


def read(path: Path, context: Context) -> Sequence[Series]:
    """Read the whole history of a file.

    Each value is of one run of the tool, so it is one launch. What a tool prints as the range has
    no common meaning and is not read.

    Raises:
        Unreadable: The file is damaged or in another format.
    """
    content = parse_json(_ASSIGNMENT.sub(b"", path.read_bytes(), count=1).rstrip(b"; \t\r\n"))
    with reporting_damage():
        if not isinstance(content, dict) or not isinstance(content.get("entries"), dict):
            raise Unreadable(
                "not a history of github-action-benchmark.",
                "Name its data.js, usually dev/bench/data.js of the branch gh-pages.",
            )
        url = content.get("repoUrl")
        series: dict[tuple[str, str, str, bool], list[HistoryPoint]] = {}
        for suite, entries in content["entries"].items():
            for entry in entries:
                for benchmark in entry["benches"]:
                    _add(series, suite, entry, benchmark, context)
        host = context.host_name(None)
        return [
            series_of(
                context,
                points,
                host=host,
                scenario=name,
                cell=key_of({"suite": suite}),
                unit=unit,
                more_is_better=is_rate,
                commit_url=f"{clean(url)}/commit/" if isinstance(url, str) and url else None,
            )
            for (suite, name, unit, is_rate), points in series.items()
        ]


def _add(
    series: dict[tuple[str, str, str, bool], list[HistoryPoint]],
    suite: str,
    entry: Mapping[str, Any],
    benchmark: Mapping[str, Any],
    context: Context,
) -> None:
    about = entry["commit"]
    # Go's other values of the same line follow a tab: `ns/op`, then `344 B/op`.
    unit, scale = str(benchmark.get("unit") or "value").partition("\t")[0], 1.0
    tool = entry.get("tool")
    is_rate = tool in _RATES or (tool != "customSmallerIsBetter" and more_is_better(unit))
    time = None if is_rate else _TIME.fullmatch(unit)
    if time is not None:
        unit, scale = "ns", _NS[time[1][0].lower()]
    at = context.moment(datetime.fromtimestamp(entry["date"] / 1000, UTC).isoformat())
    point = point_of(
        [float(benchmark["value"]) * scale],
        at=at,
        commit=context.commit
        or commit_of(
            about.get("id"),
            subject=about.get("message", ""),
            at=_committed_at(about.get("timestamp"), at),
        ),
    )
    key = suite, str(benchmark["name"]), unit, is_rate
    series.setdefault(key, []).append(point)


def _committed_at(text: object, at: str) -> str:
    """When a commit was made; when it was measured, if that is unknown."""
    try:
        return utc(text)
    except Unreadable:
        return at
