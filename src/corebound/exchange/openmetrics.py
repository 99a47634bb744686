"""Export a run to OpenMetrics, which Prometheus and its dashboards read."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from corebound.errors import MissingPackageError
from corebound.exchange.run_export import ExportedCell
from corebound.stats.launch_summary import value_ends, value_of

_S = 1e9
_LABEL = re.compile(r"[^a-zA-Z0-9_]")


def openmetrics(cells: Sequence[ExportedCell]) -> str:
    """The medians of each cell with their intervals, as gauges; counts of launches by status.

    Samples have no time stamp, because node_exporter rejects files with one: the run's own time is
    a metric.

    Args:
        cells: Cells of one run with a result.

    Raises:
        HostError: prometheus_client, which writes the format, is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry
        from prometheus_client.openmetrics.exposition import generate_latest
    except ImportError as error:
        raise MissingPackageError(
            "prometheus-client", needed_for="OpenMetrics", where="export openmetrics"
        ) from error
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(cells))
    text: bytes = generate_latest(registry)
    return text.decode()


class _Collector:
    """What prometheus_client asks for the metrics."""

    def __init__(self, cells: Sequence[ExportedCell]) -> None:
        self._cells = cells
        axes = dict.fromkeys(axis for cell in cells for axis, _ in cell.cell.axes)
        self._axes = {axis: f"axis_{_LABEL.sub('_', axis)}" for axis in axes}
        self._labels = ("scenario", "cell", "host", *dict.fromkeys(self._axes.values()))

    def collect(self) -> Iterator[Any]:
        """Every metric with its samples."""
        from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily

        run = self._cells[0].run
        info = InfoMetricFamily("corebound_run", "The run that measured.", labels=["host"])
        about = {
            "run": run.id,
            "corebound": run.corebound,
            "cpu_model": run.host.cpu_model,
            "commit": run.commit.sha if run.commit else "",
        }
        info.add_metric([run.host.name], about)
        yield info
        started = GaugeMetricFamily(
            "corebound_run_start_time", "When the run began.", labels=["host"], unit="seconds"
        )
        started.add_metric([run.host.name], datetime.fromisoformat(run.started_at).timestamp())
        yield started
        for name, text, unit, values in (
            ("iteration", "Median time of an iteration.", "seconds", self._medians()),
            ("iteration_p99", "Time that 99 % of iterations need.", "seconds", self._p99()),
            ("speedup", "Speed as a multiple of the baseline's.", "ratio", self._speedups()),
        ):
            family = GaugeMetricFamily(
                f"corebound_{name}",
                f"{text} bound: the value, or an end of its 95 % interval.",
                labels=[*self._labels, "bound"],
                unit=unit,
            )
            for cell, bound, value in values:
                family.add_metric([*self._values(cell), bound], value)
            yield family
        if any(cell.cell.metric for cell in self._cells):
            yield self._metrics()
        launches = GaugeMetricFamily(
            "corebound_launches", "Launches by status.", labels=[*self._labels, "status"]
        )
        for cell in self._cells:
            for status, number in cell.summary.counts:
                launches.add_metric([*self._values(cell), status], number)
        yield launches

    def _metrics(self) -> Any:
        """The values that commands reported; their units differ, so they are a label."""
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(
            "corebound_metric",
            "What the command reported. bound: the value, or an end of its 95 % interval.",
            labels=[*self._labels, "metric", "metric_unit", "better", "bound"],
        )
        for cell in self._cells:
            if (metric := cell.cell.metric) is None or (value := value_of(cell.summary)) is None:
                continue
            ends = zip(("low", "high"), value_ends(cell.summary) or (), strict=False)
            for bound, number in (("value", value), *ends):
                words = (metric.name, metric.unit, metric.better, bound)
                family.add_metric([*self._values(cell), *words], number)
        return family

    def _values(self, cell: ExportedCell) -> list[str]:
        axes = {self._axes[axis]: value for axis, value in cell.cell.axes}
        own = {"scenario": cell.cell.scenario, "cell": cell.cell.key, "host": cell.run.host.name}
        return [{**own, **axes}.get(label, "") for label in self._labels]

    def _medians(self) -> Iterator[tuple[ExportedCell, str, float]]:
        for cell in self._cells:
            yield from _bounds(cell, cell.times.median_ns, cell.times.interval, _S)

    def _p99(self) -> Iterator[tuple[ExportedCell, str, float]]:
        for cell in self._cells:
            yield from _bounds(cell, cell.times.p99_ns, cell.times.p99_interval, _S)

    def _speedups(self) -> Iterator[tuple[ExportedCell, str, float]]:
        for cell in self._cells:
            if (comparison := cell.comparison) is not None:
                yield from _bounds(cell, comparison.speedup_ratio, comparison.interval, 1.0)


def _bounds(
    cell: ExportedCell, value: float | None, interval: Any, unit: float
) -> Iterator[tuple[ExportedCell, str, float]]:
    if value is None:
        return
    yield cell, "value", value / unit
    if interval is not None:
        yield cell, "low", interval.low / unit
        yield cell, "high", interval.high / unit
