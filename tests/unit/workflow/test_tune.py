"""What a user is told of a budget before it is spent."""

from corebound.records.race import RaceRule
from corebound.workflow.tune import budget_note, forecast_note
from support.known import known

# 70 % of a budget of 1,000 s is for the screening and the race.
RULE = RaceRule(budget_s=700.0, confirm_blocks=6, screen_iterations=15)


def test_a_budget_that_has_time_for_all_needs_no_note() -> None:
    # 60 % of it is for their first launches.
    assert budget_note(33.0, 6, RULE) is None


def test_a_budget_for_some_candidates_names_their_number_and_what_all_need() -> None:
    note = known(budget_note(100.0, 6, RULE))

    assert "3 of the 6" in note
    assert "20 min" in note


def test_a_budget_without_an_answer_is_a_warning() -> None:
    note = known(budget_note(200.0, 6, RULE))

    assert note.startswith("warning:")
    assert "20 min" in note


def test_without_a_budget_the_first_launch_says_what_all_take() -> None:
    # 2 blocks of 6, and 6 × 3 fresh ones.
    assert "take 10 min" in (budget_note(20.0, 6, RaceRule()) or "")


def test_before_the_first_launch_a_guess_is_a_range() -> None:
    # 6 candidates and 2 fresh launches of 3 finalists, a third and three times of 12 × 10 s.
    note = forecast_note(6, 10.0, RaceRule())

    assert "between 40 s and" in note
    assert "guess" in note


def test_an_earlier_race_gives_one_duration() -> None:
    note = forecast_note(6, 10.0, RaceRule(), since="2026-03-01T02:00:00Z")

    assert "about 2 min" in note
    assert "guess" not in note


def test_with_a_budget_an_answer_needs_no_launch_of_each_candidate() -> None:
    note = forecast_note(60, 10.0, RULE, since="2026-03-01T02:00:00Z")

    assert "6 launches: about 60 s" in note
