"""What is said of a race, and its tables."""

import io
import json

from msgspec.structs import replace

from corebound.analysis.tuning import TuneResult, analyse_tuning
from corebound.cli.output.console import Console
from corebound.cli.output.sections import print_sections
from corebound.present.sections import Lane, text_of
from corebound.present.tune import (
    certainty,
    fresh_table,
    headline,
    race_table,
    screened_table,
    stages,
    tune_document,
    tune_sections,
)
from corebound.records.race import NO_TIME, RaceRule, RaceSetup
from support.texts import in_order, numbers_in
from support.tuning import BOUND, DEFAULT, ONE_CPU, ONE_THREAD, a_tuned_run, a_tuning


def a_race() -> TuneResult:
    times_ms = {DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 8.0, ONE_CPU: 15.0}
    return analyse_tuning(*a_tuned_run(times_ms))


def test_a_terminal_begins_with_the_recommendation_and_ends_with_the_records() -> None:
    out = io.StringIO()

    print_sections(tune_sections(a_race(), records="records/r1.jsonl"), Console(file=out, width=80))

    lines = out.getvalue().splitlines()
    assert in_order(lines[0], "physical cores", "1.25× faster")
    assert lines[2].startswith("With 95 % confidence")
    assert in_order(lines[-2], "Not tried", "One node", "`--max-candidates 4`")
    assert lines[-1] == "Records: records/r1.jsonl"


def test_every_configuration_has_a_row_with_how_its_race_ended() -> None:
    table = race_table(a_race())

    columns, rows = table.in_words
    assert "blocks" not in [column.heading for column in columns]
    assert ["recommended" in row[0] for row in rows] == [True, False, False, False]
    assert [numbers_in(row[1]) for row in rows] == [[], [3], [2], [2]]
    assert (rows[0][1], rows[1][0]) == ("stayed", "The default")
    assert rows[-1][2].startswith("1.40× slower (95 % CI 1.")
    assert table.rows[1][1] == Lane(blocks=3, fresh=6, dropped=True, total=9, race_blocks=3)


def test_a_configuration_whose_launch_failed_is_no_part_of_what_the_race_is_sure_of() -> None:
    times_ms = {DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 8.0, ONE_CPU: 15.0}

    sure, failed, *_ = certainty(analyse_tuning(*a_tuned_run(times_ms, failing=ONE_CPU)))

    assert numbers_in(sure) == [95, 3, 2]
    assert numbers_in(failed) == [1]


def test_ratios_without_fresh_launches_are_said_to_favour_the_winner() -> None:
    times_ms = {DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 8.0, ONE_CPU: 15.0}

    said = certainty(analyse_tuning(*a_tuned_run(times_ms, most=10)))  # all of the race

    assert any("favours the winner" in sentence for sentence in said)


def test_a_rate_is_shown_in_requests_per_second() -> None:
    times_ms = {DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 8.0, ONE_CPU: 15.0}
    result = analyse_tuning(*a_tuned_run(times_ms))
    rate = replace(result, tuning=replace(result.tuning, objective="rate"))

    table = fresh_table(rate)

    assert table.columns[1].heading == "highest rate within the bound"
    assert text_of(table.rows[0][1]).startswith("125 requests/s")


def test_what_a_screening_left_out_is_no_part_of_what_the_race_is_sure_of() -> None:
    times_ms = {DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 8.0, ONE_CPU: 300.0}
    rule = RaceRule(confirm_blocks=6, budget_s=70.0, screen_iterations=15)
    tuning = RaceSetup(objective="latency", rule=rule)
    result = analyse_tuning(*a_tuned_run(times_ms, tuning=tuning))

    _, raced = race_table(result).in_words
    _, screened = screened_table(result).in_words
    said = " ".join(certainty(result))
    document = tune_document(result, ())
    assert "One CPU, 1 thread" not in [row[0] for row in raced]
    assert [row[:2] for row in screened] == [("One CPU, 1 thread", "at least 10× slower")]
    assert stages(result)[:2] == (("candidates", 4), ("raced", 3))
    assert in_order(said, "4 configurations", "the 3 that raced", "none of the 3")
    assert [one["cell"] for one in document["race"]["screened"]] == [ONE_CPU]
    assert (document["tried"], document["candidates"]) == (4, 4)


def test_a_headline_says_how_many_of_all_candidates_were_tried() -> None:
    run, launches = a_tuned_run({DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 8.0, ONE_CPU: 15.0})
    kept = [launch for launch in launches if launch.cell.key != ONE_CPU]
    skipped = next(launch for launch in launches if launch.cell.key == ONE_CPU)
    skipped = replace(skipped, status="skipped", reason=NO_TIME, workers=())

    said = headline(analyse_tuning(run, [*kept, skipped]))

    # The fixture leaves another one out before the race.
    assert numbers_in(said)[-2:] == [3, 5]


def test_the_winner_is_compared_with_each_finalist_by_fresh_launches() -> None:
    (winner, *_), (default, _, change), *_ = fresh_table(a_race()).rows

    assert (in_order(text_of(winner), "Physical cores"), default) == (True, "The default")
    assert text_of(change).startswith("1.25× faster (95 % CI 1.2")


def test_the_document_names_the_settings_and_the_finalists() -> None:
    result, files = a_tuning()

    document = json.loads(json.dumps(tune_document(result, files)))

    assert document["advice"] == "change"
    assert document["settings"] == {"binding": "physical-cores", "threads": "per-core"}
    assert [one["cell"] for one in document["finalists"]][:2] == [BOUND, DEFAULT]
    assert document["finalists"][0]["winner_speedup_ratio"] is None
    assert {one["kind"] for one in document["files"]} >= {"shell", "docker", "systemd"}
