"""Import JSON files of Google Benchmark (`--benchmark_out`)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corebound.exchange.reading import Unreadable, clean, parse_json, reporting_damage
from corebound.exchange.result_files import (
    Context,
    commit_of,
    environment_of,
    key_of,
    point_of,
    series_of,
)
from corebound.records.history import Series

_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# The aggregate that stands for repetitions that were not written, the best first.
_AGGREGATES = ("median", "mean")


def read(path: Path, context: Context) -> Sequence[Series]:
    """Read every benchmark of a file.

    All repetitions run in one process, so the median of their real times is one launch.

    Raises:
        Unreadable: The file is damaged or in another format.
    """
    content = parse_json(path.read_bytes())
    with reporting_damage():
        about = content.get("context") if isinstance(content, dict) else None
        if not isinstance(about, dict) or "benchmarks" not in content:
            raise Unreadable(
                "not a file of Google Benchmark.",
                "Write it with `--benchmark_out=FILE --benchmark_out_format=json`.",
            )
        at = context.moment(about.get("date"))
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for row in content["benchmarks"]:
            groups.setdefault(str(row.get("run_name") or row["name"]), []).append(row)
        values = {name: _value(rows) for name, rows in groups.items()}
        return [
            series_of(
                context,
                [
                    point_of(
                        launches,
                        at=at,
                        # Written by `--benchmark_context=commit=HASH`.
                        commit=context.commit or commit_of(about.get("commit"), at=at),
                        environment_key=environment_of(
                            {
                                "cpus": about.get("num_cpus"),
                                "library build": about.get("library_build_type"),
                            }
                        ),
                        missing=missing,
                    )
                ],
                host=context.host_name(about.get("host_name")),
                scenario=name.partition("/")[0],
                cell=_cell(name),
            )
            for name, (launches, missing) in values.items()
            if launches or missing
        ]


def _value(rows: Sequence[Mapping[str, Any]]) -> tuple[list[float], str | None]:
    """The value of one benchmark's process, or why there is none; neither for a fit of O(n)."""
    failed = [row for row in rows if row.get("error_occurred")]
    repetitions = [
        row for row in rows if row.get("run_type", "iteration") == "iteration" and row not in failed
    ]
    if repetitions:
        return [statistics.median(map(_real_time_ns, repetitions))], None
    for name in _AGGREGATES:
        for row in rows:
            if row.get("aggregate_name") == name:
                return [_real_time_ns(row)], None
    if failed:
        return [], f"failed: {clean(str(failed[0].get('error_message') or 'no reason'))}"
    return [], None


def _real_time_ns(row: Mapping[str, Any]) -> float:
    return float(row["real_time"]) * _NS[row.get("time_unit", "ns")]


def _cell(name: str) -> str:
    """The arguments of a benchmark: `BM_sort/1024/threads:2` has 1024 and threads."""
    parts = name.split("/")[1:]
    plain = "/".join(part for part in parts if ":" not in part)
    named = dict(part.split(":", 1) for part in parts if ":" in part)
    return key_of({**({"arguments": plain} if plain else {}), **named})
