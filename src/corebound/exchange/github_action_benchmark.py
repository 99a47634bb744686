"""Import the history that github-action-benchmark keeps (`data.js`)."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from msgspec.structs import replace

from corebound.exchange import result_files
from corebound.exchange.measures import measure_of, more_is_better
from corebound.exchange.reading import DAMAGED, Unreadable, parse_json, reporting_damage
from corebound.records import atomic_write
from corebound.records.history import HistoryPoint, Series
from corebound.text import web_address

_ASSIGNMENT = re.compile(rb"\s*window\.BENCHMARK_DATA\s*=\s*")
# The tools whose values are rates.
_RATES = {"benchmarkjs", "pytest", "customBiggerIsBetter"}


# A benchmark's results: the tool's unit, that of the point, whether it is a rate, and the point.
_Results: TypeAlias = list[tuple[str, str, bool, HistoryPoint]]


def read(path: Path, context: result_files.Context) -> Iterator[Series | Unreadable]:
    """Read the whole history of a file.

    Each value is of one run of the tool, so it is one launch. What a tool prints as the range has
    no common meaning and is not read. A benchmark whose unit changed gives a series for each unit.

    Raises:
        Unreadable: The file is damaged or in another format.
    """
    data = atomic_write.read(path)
    content = parse_json(_ASSIGNMENT.sub(b"", data, count=1).rstrip(b"; \t\r\n"))
    if not isinstance(content, dict) or not isinstance(content.get("entries"), dict):
        raise Unreadable(
            "not a history of github-action-benchmark.",
            "Name its data.js, usually dev/bench/data.js of the branch gh-pages.",
        )
    url = web_address(content.get("repoUrl"))
    commit_url = f"{url.rstrip('/')}/commit/" if url else None
    for suite, entries in content["entries"].items():
        benchmarks: dict[str, _Results] = {}
        for number, entry in enumerate(entries if isinstance(entries, list) else [], start=1):
            try:
                with reporting_damage():
                    yield from _read_entry(entry, benchmarks, context)
            except Unreadable as error:
                yield Unreadable(f"{suite}, entry {number}: {error.what}", error.fix)
        for name, results in benchmarks.items():
            for (unit, is_rate), points in _by_unit(results).items():
                yield result_files.series_of(
                    context,
                    points,
                    scenario=name,
                    cell=result_files.key_of({"suite": suite}),
                    unit=unit,
                    more_is_better=is_rate,
                    commit_url=commit_url,
                )


def _by_unit(results: _Results) -> dict[tuple[str, bool], list[HistoryPoint]]:
    """The points of a benchmark by unit and direction.

    Where units are not surely the same, as `median ms` and `ms`, each point says its own.
    """
    units = {unit for unit, *_ in results}
    is_unsure = len(units) > 1 and not all(measure_of(unit).is_exact for unit in units)
    points: dict[tuple[str, bool], list[HistoryPoint]] = {}
    for unit, stored_unit, is_rate, point in results:
        key = (("unit", unit),) if is_unsure else ()
        points.setdefault((stored_unit, is_rate), []).append(replace(point, environment_key=key))
    return points


def _read_entry(
    entry: Mapping[str, Any], benchmarks: dict[str, _Results], context: result_files.Context
) -> Iterator[Unreadable]:
    about = entry["commit"]
    at = context.moment(datetime.fromtimestamp(entry["date"] / 1000, UTC).isoformat())
    commit = context.commit or result_files.commit_of(
        about.get("id"),
        subject=about.get("message", ""),
        at=result_files.committed_at(about.get("timestamp"), at),
    )
    tool = entry.get("tool")
    for number, benchmark in enumerate(entry["benches"], start=1):
        if not isinstance(benchmark, dict) or "name" not in benchmark:
            yield Unreadable(f"benchmark {number} of {at} is damaged: no name.", DAMAGED)
            continue
        # Go's other values of the same line follow a tab: `ns/op`, then `344 B/op`.
        unit = str(benchmark.get("unit") or "value").partition("\t")[0]
        is_rate = tool in _RATES or (tool != "customSmallerIsBetter" and more_is_better(unit))
        name, scale, _ = measure_of(unit)
        is_time = name == "ns" and not is_rate
        point = result_files.point_of(
            [benchmark.get("value")], scale=scale if is_time else 1.0, at=at, commit=commit
        )
        result = unit, name if is_time else unit, is_rate, point
        benchmarks.setdefault(str(benchmark["name"]), []).append(result)
