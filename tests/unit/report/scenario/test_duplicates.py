"""Configurations that are the same on a host, on the page: one row names them all."""

import json

from corebound.analysis.duplicate_names import long_names
from corebound.analysis.scenario_result import same_configurations
from corebound.analysis.selection import latest_results
from corebound.analysis.wording import plain
from corebound.report.downloads import cells_json
from corebound.report.scenario.configurations import configurations
from corebound.report.scenario.scaling import scaling
from corebound.report.scenario.verdict import verdict_of
from support.duplicates import DUPLICATES, result_with_duplicates
from support.report_sample import a_sample

SAME = "unbound or one node with one thread per core; one node with 2 threads"


def test_one_row_names_all_configurations_that_it_was_measured_for() -> None:
    result = result_with_duplicates(baseline={"binding": "none"})

    table = configurations(result)

    names = [long_names(row.cell.duplicates) for row in table.rows if row.cell.duplicates]
    assert names == [SAME]
    assert table.lead.startswith("6 configurations, 3 distinct")
    assert table.absent == ""
    first = table.anchors[table.rows[0].cell.cell.key]
    assert {table.anchors[key] for key in DUPLICATES} == {first}


def test_the_table_counts_configurations_that_are_the_same() -> None:
    # One of the launched cells is also the same as another.
    (result,) = latest_results([a_sample()])

    same = same_configurations(result)

    assert same == sum(cell.equivalent_cell is not None for cell in result.cells) > 0
    assert f"{len(result.cells) - same} distinct" in configurations(result).lead


def test_configurations_that_are_all_the_same_have_one_result() -> None:
    result = result_with_duplicates(
        matrix={"binding": ["none", "node"]}, duplicates={"binding=node": "binding=none"}
    )

    verdict, support = verdict_of(result)

    assert plain(verdict) == "One iteration takes 10.0 ms."
    assert "All 2 configurations are the same on this host." in plain(support)


def test_a_curve_over_threads_has_the_duplicates_among_its_points() -> None:
    result = result_with_duplicates(
        matrix={"binding": ["none", "node", "socket"], "threads": [1, 2, 4]},
        duplicates={
            "binding=node,threads=2": "binding=none,threads=2",
            "binding=node,threads=4": "binding=none,threads=4",
            "binding=socket,threads=1": "binding=node,threads=1",
            "binding=socket,threads=2": "binding=none,threads=2",
            "binding=socket,threads=4": "binding=none,threads=4",
        },
    )

    section = scaling(result)

    assert section is not None
    # All of the third curve is the same as the second.
    assert [(curve.label.name, len(curve.points)) for curve in section.chart.curves] == [
        ("unbound", 3),
        ("one node", 3),
    ]


def test_downloads_name_the_duplicates() -> None:
    document = json.loads(cells_json(result_with_duplicates(), ()))

    assert [cell["duplicates"] for cell in document["cells"]] == [list(DUPLICATES), [], []]
