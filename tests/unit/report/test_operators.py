"""The page of imported operator profiles shows only what a profile contains."""

import csv
import dataclasses
import io
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.analysis.selection import latest_results
from corebound.analysis.wording import TextSpan, plain
from corebound.records.launch_record import PROFILE_SCHEMA, ImportedProfile, OperatorProfile
from corebound.report.downloads import imported_csv
from corebound.report.elements import Page
from corebound.report.pages.operators import operators_page
from support.build import an_operator
from support.report_sample import NOW, a_sample, pages_of, sample_imports
from support.texts import in_order


def a_profile(name: str = "one", **changed: Any) -> ImportedProfile:
    whole = OperatorProfile(
        iterations=4,
        step_ns=1_000_000,
        outside_ns=100_000,
        operators=(an_operator(), an_operator("add", 300_000)),
        phases={},
    )
    return ImportedProfile(
        schema=PROFILE_SCHEMA,
        name=name,
        source="PyTorch profiler, Chrome trace",
        device=None,
        files=("a.json",),
        profile=replace(whole, **changed),
    )


def a_summed_profile(**changed: Any) -> ImportedProfile:
    operators = tuple(
        dataclasses.replace(operator, quiet_ns=None, min_ns=None, max_ns=None)
        for operator in a_profile().profile.operators
    )
    return a_profile(
        "summed",
        **{
            "iterations": None,
            "step_ns": None,
            "outside_ns": None,
            "operators": operators,
            **changed,
        },
    )


def page(*profiles: ImportedProfile) -> Page:
    made = operators_page([], profiles, now=NOW)
    assert made is not None
    return made


def test_without_any_profile_there_is_no_page() -> None:
    assert operators_page([], [], now=NOW) is None


def test_imported_profiles_are_shown_without_any_run() -> None:
    made = pages_of([], profiles=sample_imports())

    assert 'href="operators.html"' in made["index.html"]
    assert "last night" in made["operators.html"]


def test_shares_are_of_all_operators_where_no_step_is_known() -> None:
    made = page(a_summed_profile())
    (table,) = made.tables

    # 600 and 300 of 900.
    assert [(row.name, row.times[0].share) for row in table.rows] == [
        ("conv", "67 %"),
        ("add", "33 %"),
    ]
    assert [row.name for row in table.sums] == ["all operators together"]
    assert in_order(plain(table.notes[0]), "conv", "67 %", "operators")
    assert table.per == "in total"


def test_beside_one_that_tells_more_a_dash_stands_for_what_is_not_told() -> None:
    (table,) = page(a_profile(), a_summed_profile()).tables

    rows = {row.name: [one.time for one in row.times] for row in (*table.rows, *table.sums)}
    assert rows["outside operators"] == ["0.10", "–"]
    assert rows["one step, profiled"] == ["1.00", "–"]
    assert rows["its operators, with the shortest time of each call"] == ["0.81", "–"]
    assert rows["all operators together"] == ["0.90", "0.90"]
    assert table.per == "per iteration or in total"


def test_what_makes_steps_of_the_same_profiler_differ_is_named() -> None:
    slow = a_profile(
        "slow", step_ns=3_000_000, operators=(an_operator(), an_operator("add", 2_300_000))
    )
    profile = replace(slow, source="MindSpore profiler, CPU trace")

    note = plain(page(a_profile(), slow).tables[0].notes[-1])
    assert in_order(note, "slow", "2.00 ms more", "2.00 ms", "add")
    # Another framework calls the same operators otherwise.
    (table,) = page(a_profile(), profile).tables
    assert table.notes
    assert not any("takes 2.00 ms" in plain(note) for note in table.notes)


@pytest.mark.parametrize(("number", "tables"), [(1, 1), (6, 1), (7, 2), (13, 3)])
def test_six_stand_side_by_side_at_most(number: int, tables: int) -> None:
    made = page(*(a_profile(f"profile {place}") for place in range(number)))

    assert len(made.tables) == tables
    assert sum(len(table.columns) for table in made.tables) == number


def test_a_profile_of_no_time_at_all_is_shown() -> None:
    nothing = dataclasses.replace(an_operator(), total_ns=0, calls=0, quiet_ns=0)

    (table,) = page(a_profile(step_ns=0, outside_ns=0, operators=(nothing,))).tables

    assert [row.times[0].share for row in table.rows] == ["", ""]


def test_the_export_leaves_empty_what_is_not_told() -> None:
    lines = list(csv.DictReader(io.StringIO(imported_csv([a_profile(), a_summed_profile()]))))

    assert [(line["profile"], line["operator"]) for line in lines] == [
        ("one", "conv"),
        ("one", "add"),
        ("one", "outside operators"),
        ("summed", "conv"),
        ("summed", "add"),
    ]
    assert lines[0]["share_ratio"] == "0.6"
    assert lines[3]["call_min_ns"] == lines[3]["share_ratio"] == ""


def test_beside_figures_of_all_that_was_profiled_bars_are_shares() -> None:
    # Ten times as long, for it is of ten iterations and does not say so.
    long = tuple(
        dataclasses.replace(operator, total_ns=10 * operator.total_ns)
        for operator in a_profile().profile.operators
    )
    whole = a_profile("whole", iterations=None, step_ns=10_000_000, operators=long)

    (table,) = page(a_profile(), whole).tables

    assert [length for _, length in table.rows[0].bars] == [100, 100]
    assert table.sums[0].name == "one step, or all that was profiled"


def test_two_profiles_show_how_much_more_or_less_each_operator_takes() -> None:
    slower = a_profile("two", operators=(an_operator("conv", 900_000), an_operator("gelu", 50_000)))

    (table,) = page(a_profile(), slower).tables

    shown = {row.name: (row.difference, row.difference_bar) for row in table.rows}
    assert shown["conv"] == ("+0.30", ("bad", 16.7))
    assert shown["gelu"][0].startswith("+")
    assert shown["add"][0].startswith("\N{MINUS SIGN}")
    assert shown["add"][1][0] == "good"
    assert shown["outside operators"] == ("0.00", None)


def test_profiles_that_are_not_comparable_have_no_difference() -> None:
    for others in ((a_profile("two"), a_profile("three")), (a_summed_profile(),)):
        tables = page(a_profile(), *others).tables

        assert not any(row.difference for table in tables for row in table.rows)


def test_a_bar_has_no_colour_where_there_is_no_figure_and_one_where_it_took_no_time() -> None:
    nothing = dataclasses.replace(an_operator("add"), total_ns=0, quiet_ns=0)
    without = a_profile("two", operators=(an_operator(),))
    with_nothing = a_profile("three", operators=(an_operator(), nothing))

    (table,) = page(a_profile(), without, with_nothing).tables

    (row,) = (row for row in table.rows if row.name == "add")
    assert [bool(colour) for colour, _ in row.bars] == [True, False, True]
    assert [length for _, length in row.bars][1:] == [0, 0]


def test_a_column_without_any_of_the_other_types_has_a_dash_for_them() -> None:
    many = tuple(an_operator(f"type{index:02}", 1_000_000 - index) for index in range(20))

    few = a_profile("few", operators=many[:2])

    (table,) = page(a_profile("many", operators=many), few).tables

    (rest,) = [row for row in table.rows if row.name.endswith("other types")]
    assert [one.time for one in rest.times] == ["8.00", "–"]


def test_bars_of_an_iteration_and_of_all_that_was_profiled_are_called_shares() -> None:
    (mixed,) = page(a_profile(), a_summed_profile()).tables
    (alike,) = page(a_profile(), a_profile("two")).tables

    assert [drawn.title for drawn in mixed.stacked_bars] == ["Shares of a step, by operator"]
    assert [drawn.title for drawn in alike.stacked_bars] == ["A step, by operator"]


def test_what_to_run_is_code_in_the_text_above_profiles_of_scenarios() -> None:
    made = operators_page(latest_results([a_sample()]), (), now=NOW)

    assert made is not None
    assert TextSpan("corebound import profile", "code") in made.hero.support
    assert "`" not in plain(made.hero.support)
