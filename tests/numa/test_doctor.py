"""`corebound doctor --tune` as root of a booted machine."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from support import needs

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"

pytestmark = [
    pytest.mark.numa,
    needs.emulator,
]


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    completed = subprocess.run(
        (
            *(str(HERE / "numa-vm"), "run", "--sockets", "2", "--cores", "2", "--threads", "2"),
            *("--mem", "1024", "--timeout", "400", "--share", f"{SOURCE}:/src"),
            *("--share", f"{sysconfig.get_path('purelib')}:/site"),
            *("--share", f"{HERE / 'suite'}:/suite", "--env", "PYTHONPATH=/src:/site"),
            *("--", "python3.11", "/suite/tuning.py"),
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    document: dict[str, Any] = json.loads(completed.stdout)
    return document


# What the guest's kernel has of what was spoilt.
SPOILT = {"THP", "THP defrag", "KSM", "NUMA balancing", "ASLR", "autogroup"}


def test_wrong_settings_are_found(told: dict[str, Any]) -> None:
    warned = {check for check, one in told["spoilt"].items() if one["state"] == "warning"}

    assert {"SMT", *SPOILT} <= warned
    # It has no swap, and an emulated machine has no clock to govern.
    assert told["spoilt"]["swappiness"]["state"] == "ok"
    assert told["spoilt"]["governor"]["state"] == "unavailable"


def test_tuning_fixes_the_reported_settings(told: dict[str, Any]) -> None:
    assert [outcome["fault"] for outcome in told["outcomes"]] == [None] * len(told["wanted"])
    assert {told["tuned"][check]["state"] for check in SPOILT} == {"ok"}


def test_settings_are_restored_after_tuning_is_killed_at_any_moment(
    told: dict[str, Any],
) -> None:
    kills = told["kills"]

    # Five steps a setting, each a kill of its own, and the last was let through.
    assert len(kills) == 5 * len(told["wanted"]) + 1
    assert all(kill["restored"] for kill in kills)
    assert {kill["changed"] for kill in kills} == set(range(len(told["wanted"]) + 1))
    assert told["restored"]
