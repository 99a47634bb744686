"""Import Bencher Metric Format: JSON of benchmarks, their measures and values."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from corebound.exchange.reading import Unreadable
from corebound.exchange.result_files import Context, each_row, key_of, read_json, series_of
from corebound.records.history import Series

# Bencher's own measures: the unit, its factor, and whether more is better.
_MEASURES = {
    "latency": ("ns", 1.0, False),
    "throughput": ("operations/s", 1.0, True),
    "build-time": ("ns", 1e9, False),
    "file-size": ("bytes", 1.0, False),
}


def read(path: Path, context: Context) -> Iterable[Series | Unreadable]:
    """Read every measure of every benchmark of a file.

    Each value is of one report, so it is one launch; the lower and upper values have no common
    meaning and are not read. The file has neither host nor time nor commit. Other measures than
    Bencher's own are taken for costs, of which less is better.

    Raises:
        Unreadable: The file is damaged or in another format.
    """
    content = read_json(path)
    benchmarks = content.items() if isinstance(content, dict) else ()
    rows = [
        (name, measure, metric)
        for name, measures in benchmarks
        if isinstance(measures, dict)
        for measure, metric in measures.items()
    ]
    if not any(isinstance(metric, dict) and "value" in metric for _, _, metric in rows):
        raise Unreadable(
            "not Bencher Metric Format.",
            "See https://bencher.dev/docs/reference/bencher-metric-format/.",
        )
    return each_row(rows, lambda row: _series(row, context), what="measure")


def _series(row: tuple[str, str, Any], context: Context) -> Series:
    name, measure, metric = row
    unit, scale, is_rate = _MEASURES.get(measure, (measure, 1.0, False))
    value = metric.get("value") if isinstance(metric, dict) else None
    return series_of(
        context,
        [context.point([value], scale=scale)],
        scenario=name,
        cell=key_of({"measure": measure}),
        unit=unit,
        more_is_better=is_rate,
    )
