"""Import JSON files of Google Benchmark (`--benchmark_out`)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from corebound.exchange import result_files
from corebound.exchange.reading import DAMAGED, Unreadable, clean, reporting_damage
from corebound.records.history import Series

_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# The aggregate that stands for repetitions that were not written, the best first.
_AGGREGATES = ("median", "mean")


def read(path: Path, context: result_files.Context) -> Iterator[Series | Unreadable]:
    """Read every benchmark of a file.

    All repetitions run in one process, so the median of their real times is one launch.

    Raises:
        Unreadable: The file is damaged or in another format.
    """
    content = result_files.read_json(path)
    about = content.get("context") if isinstance(content, dict) else None
    if not isinstance(about, dict) or not isinstance(content.get("benchmarks"), list):
        raise Unreadable(
            "not a file of Google Benchmark.",
            "Write it with `--benchmark_out=FILE --benchmark_out_format=json`.",
        )
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for number, row in enumerate(content["benchmarks"], start=1):
        name = (row.get("run_name") or row.get("name")) if isinstance(row, dict) else None
        if name:
            groups.setdefault(str(name), []).append(row)
        else:
            yield Unreadable(f"benchmark {number}: damaged: no name.", DAMAGED)
    with reporting_damage():
        for name, rows in groups.items():
            if (series := _series(name, rows, about, context)) is not None:
                yield series


def _series(
    name: str,
    rows: Sequence[Mapping[str, Any]],
    about: Mapping[str, Any],
    context: result_files.Context,
) -> Series | None:
    launches, missing = _value(rows)
    if not launches and missing is None:
        return None
    at = context.moment(about.get("date"))
    point = result_files.point_of(
        launches,
        at=at,
        # Written by `--benchmark_context=commit=HASH`.
        commit=context.commit or result_files.commit_of(about.get("commit"), at=at),
        environment_key=result_files.environment_of(
            {"cpus": about.get("num_cpus"), "library build": about.get("library_build_type")}
        ),
        missing=missing,
    )
    scenario, host = name.partition("/")[0], about.get("host_name")
    return result_files.series_of(context, [point], scenario=scenario, cell=_cell(name), host=host)


def _value(rows: Sequence[Mapping[str, Any]]) -> tuple[list[object], str | None]:
    """The value of one benchmark's process, or why there is none; neither for a fit of O(n)."""
    failures = [failure for row in rows if (failure := _failure(row))]
    repetitions = [
        row for row in rows if row.get("run_type", "iteration") == "iteration" and not _failure(row)
    ]
    if repetitions:
        return [result_files.median_of([*map(_real_time_ns, repetitions)])], None
    for name in _AGGREGATES:
        for row in rows:
            if row.get("aggregate_name") == name and not _failure(row):
                return [_real_time_ns(row)], None
    return [], next(iter(failures), None)


def _failure(row: Mapping[str, Any]) -> str | None:
    """Why a run did not count, in the words of its benchmark; None if it did."""
    for key, message, word in (
        ("error_occurred", "error_message", "failed"),
        ("skipped", "skip_message", "skipped"),
    ):
        if row.get(key):
            return f"{word}: {clean(str(row.get(message) or 'no reason'))}"
    return None


def _real_time_ns(row: Mapping[str, Any]) -> Any:
    """The real time of a run; anything but a float is not a time."""
    time, unit = row.get("real_time"), row.get("time_unit", "ns")
    if isinstance(time, bool) or not isinstance(time, int | float):
        return time
    return float(time) * _NS[unit] if unit in _NS else f"{time} {unit}"


def _cell(name: str) -> str:
    """The arguments of a benchmark: `BM_sort/1024/threads:2` has 1024 and threads."""
    parts = name.split("/")[1:]
    named = [part.partition(":")[::2] for part in parts if ":" in part]
    if len(dict(named)) < len(named):
        return result_files.key_of({"arguments": "/".join(parts)})
    plain = "/".join(part for part in parts if ":" not in part)
    return result_files.key_of({**({"arguments": plain} if plain else {}), **dict(named)})
