"""Durations and labels on the command line, such as --budget 10m."""

import pytest

from corebound.errors import InputError
from corebound.workflow.options import labels, seconds
from corebound.workflow.prepare import RunRequest


@pytest.mark.parametrize(
    ("text", "length_s"), [("90s", 90), ("10m", 600), ("1h30m", 5400), ("2h", 7200), ("0s", 0)]
)
def test_a_budget_has_hours_minutes_and_seconds(text: str, length_s: float) -> None:
    assert seconds(text, option="--wait") == length_s


@pytest.mark.parametrize("text", ["", "10", "m", "ten minutes", "-5m", "1m1h", "1.5h"])
def test_an_invalid_duration_is_rejected_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="10m or 1h30m"):
        seconds(text)


@pytest.mark.parametrize("text", ["", "rack", "rack=", "=a7", "ra ck=a7", "rack=a\x1b7", "-r=1"])
def test_anything_else_is_no_label(text: str) -> None:
    with pytest.raises(InputError, match="--label"):
        RunRequest(files=(), label=labels([text]))


@pytest.mark.parametrize("text", ["0s", "0m", "0h", "0h0m0s"])
def test_a_budget_of_zero_is_rejected(text: str) -> None:
    with pytest.raises(InputError) as refused:
        seconds(text)

    assert refused.value.where == "--budget"
