"""A setting has one name on a page, which is the one that its commands have."""

from __future__ import annotations

from corebound.analysis.selection import latest_studies
from corebound.analysis.wording import compared_with, doing, full_name, plain
from corebound.report.scenario.page import scenario_page
from corebound.scenario.matrix import expand
from support.build import a_scenario
from support.report_sample import NOW, a_serving_sample


def test_the_share_of_each_worker_is_named_as_its_setting_is_written() -> None:
    scenario = a_scenario(matrix={"threads": ["default", "cores-per-worker"]}, workers=2)
    default, share = expand(scenario, "s.yaml")

    assert full_name(share) == "cores-per-worker threads"
    assert doing(share, default) == "Running cores-per-worker threads"
    assert compared_with(default, share) == "cores-per-worker threads"


def test_a_page_of_servers_has_one_name_for_it_in_headline_rows_and_commands() -> None:
    page = scenario_page(
        latest_studies([a_serving_sample()])[0], findings=(), now=NOW, records_file="r.jsonl"
    )

    assert plain(page.hero.verdict).startswith("Running cores-per-worker threads is ")
    assert any("cores-per-worker" in row.axes for row in page.cells.rows)
    assert page.serving is not None
    assert any("cores-per-worker threads" in full_name(row.cell.cell) for row in page.serving.rows)
    assert any("threads=cores-per-worker" in row.command.line for row in page.cells.rows)
