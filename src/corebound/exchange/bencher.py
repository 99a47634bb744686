"""Import Bencher Metric Format: JSON of benchmarks, their measures and values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from corebound.exchange.reading import Unreadable, parse_json, reporting_damage
from corebound.exchange.result_files import Context, key_of, point_of, series_of
from corebound.records.history import Series

# Bencher's own measures: the unit, its factor, and whether more is better.
_MEASURES = {
    "latency": ("ns", 1.0, False),
    "throughput": ("operations/s", 1.0, True),
    "build-time": ("ns", 1e9, False),
    "file-size": ("bytes", 1.0, False),
}


def read(path: Path, context: Context) -> Sequence[Series]:
    """Read every measure of every benchmark of a file.

    Each value is of one report, so it is one launch; the lower and upper values have no common
    meaning and are not read. The file has neither host nor time nor commit. Other measures than
    Bencher's own are taken for costs, of which less is better.

    Raises:
        Unreadable: The file is damaged or in another format.
    """
    content = parse_json(path.read_bytes())
    with reporting_damage():
        if not isinstance(content, dict) or not all(
            isinstance(metric, dict) and "value" in metric
            for measures in content.values()
            for metric in (measures.values() if isinstance(measures, dict) else [None])
        ):
            raise Unreadable(
                "not Bencher Metric Format.",
                "See https://bencher.dev/docs/reference/bencher-metric-format/.",
            )
        series = []
        for name, measures in content.items():
            for measure, metric in measures.items():
                unit, scale, is_rate = _MEASURES.get(measure, (measure, 1.0, False))
                point = point_of(
                    [float(metric["value"]) * scale],
                    at=context.moment(None),
                    commit=context.commit,
                )
                series.append(
                    series_of(
                        context,
                        [point],
                        host=context.host_name(None),
                        scenario=name,
                        cell=key_of({"measure": measure}),
                        unit=unit,
                        more_is_better=is_rate,
                    )
                )
        return series
