"""A history that grows night by night."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corebound.stats import history as module
from corebound.stats.change_points import Night, find_steps
from corebound.stats.history import History, extended, extended_by
from corebound.stats.step import Step


def nights_of(*levels: tuple[int, float], seed: int = 1, key: str = "host") -> list[Night]:
    rng = np.random.default_rng(seed)
    return [
        Night(figure=level * math.exp(0.01 * rng.standard_normal()), key=key)
        for count, level in levels
        for _ in range(count)
    ]


@settings(max_examples=6)
@given(
    seed=st.integers(0, 1000),
    first=st.integers(10, 40),
    second=st.integers(4, 25),
    window=st.sampled_from([20, 40, 100]),
)
def test_night_by_night_the_steps_are_those_of_the_window_at_once(
    seed: int, first: int, second: int, window: int
) -> None:
    nights = [*nights_of((first, 1.0), (second, 1.06), seed=seed), *nights_of((8, 2.0), key="new")]
    nights[5] = Night(figure=None, key="host")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WINDOW_NIGHTS", window)

        history = extended_by(History(), nights)

    at_once = find_steps(nights[-window:])
    assert [
        (step.at - history.passed, step.ratio, step.interval, step.votes, step.p_value)
        for step in history.steps
    ] == [(step.at, step.ratio, step.interval, step.votes, step.p_value) for step in at_once]
    assert len(history.nights) <= window


def test_a_step_is_new_on_the_night_it_is_found_and_old_on_the_next() -> None:
    history = extended_by(History(), nights_of((60, 1.0)))
    seen = []
    for night in nights_of((6, 1.05), seed=2):
        history = extended(history, night)
        seen.append([step.status for step in history.steps])

    assert seen[:3] == [[], ["new"], ["old"]]


def test_a_step_that_the_window_left_behind_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOW_NIGHTS", 40)

    history = extended_by(History(), nights_of((30, 1.0), (60, 1.1)))

    assert history.steps == ()
    (step,) = history.past
    assert abs(step.at - 30) <= 1
    assert step.status == "old"


def test_a_night_looks_at_no_more_than_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []

    def counting(nights: tuple[Night, ...], **rest: object) -> tuple[Step, ...]:
        looked_at.append(len(nights))
        return ()

    monkeypatch.setattr(module, "find_steps", counting)

    extended_by(History(), [Night(figure=1.0)] * 1000)

    assert max(looked_at) == module.WINDOW_NIGHTS


def test_a_history_survives_being_written_down() -> None:
    history = extended_by(History(), nights_of((30, 1.0), (10, 1.1)))

    assert msgspec.json.decode(msgspec.json.encode(history), type=History) == history
