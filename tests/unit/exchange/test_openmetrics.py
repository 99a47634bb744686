"""The export to OpenMetrics, read by the parser of prometheus_client."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from corebound.exchange.openmetrics import openmetrics
from corebound.exchange.run_export import exported_cells
from corebound.scenario.matrix import expand
from support.build import a_launch, a_run, a_scenario
from support.known import known
from support.report_sample import a_sample


def samples(text: str) -> dict[tuple[str, str, str], float]:
    """The values by metric, cell and bound or status."""
    return {
        (
            sample.name,
            sample.labels.get("cell", ""),
            sample.labels.get("bound") or sample.labels.get("status") or "",
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_parser_reads_what_the_statistics_say() -> None:
    cells = [cell for cell in exported_cells(*a_sample()) if cell.is_measured]

    found = samples(openmetrics(cells))

    for cell in cells:
        key, interval = cell.cell.key, cell.summary.interval
        assert interval is not None
        median = found["corebound_iteration_seconds", key, "value"]
        assert median == pytest.approx(known(cell.summary.median_ns) / 1e9)
        low = found["corebound_iteration_seconds", key, "low"]
        assert low == pytest.approx(interval.low / 1e9)
        assert found["corebound_launches", key, "ok"] == cell.summary.count("ok")
    assert sum(name == "corebound_speedup_ratio" for name, _, _ in found) == 3 * 14
    # 2026-03-14T08:00:00Z by `date -u +%s`.
    assert found["corebound_run_start_time_seconds", "", ""] == 1_773_475_200


def test_each_axis_is_a_label_and_odd_texts_are_escaped() -> None:
    scenario = a_scenario(
        parameters={"text": "a"}, matrix={"parameters": {"text": ['a"b\\c', "é\nf"]}}
    )
    run = a_run(scenarios=(scenario,))
    launches = [a_launch(cell=cell) for cell in expand(scenario, "")]
    cells = list(exported_cells(run, launches))

    (family,) = (
        family
        for family in text_string_to_metric_families(openmetrics(cells))
        if family.name == "corebound_iteration_seconds"
    )

    values = {sample.labels["axis_text"] for sample in family.samples}
    assert values == {dict(cell.cell.axes)["text"] for cell in cells}
