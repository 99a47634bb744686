"""An error of the pytest fixture shows the line of the test and the fix, not corebound's frames."""

from pathlib import Path
from typing import Any

import pytest

from corebound.api.speed_check import SpeedCheck
from corebound.errors import InputError


def work() -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    "wrong",
    [
        {"baseline": "no-such-revision"},
        {"baseline": 3},
        {"baseline": work, "margin": "large"},
        {"baseline": work, "launches": (0, 0)},
        {"baseline": work, "settings": {"no-such-key": 1}},
    ],
)
def test_an_error_shows_only_the_frame_of_the_test(tmp_path: Path, wrong: dict[str, Any]) -> None:
    speed = SpeedCheck(tmp_path, lambda _line: None)

    with pytest.raises(InputError) as caught:
        speed.check(work, **wrong)

    shown = [entry for entry in caught.traceback if not entry.ishidden(caught)]
    assert [entry.path for entry in shown] == [Path(__file__)]
