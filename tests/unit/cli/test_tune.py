"""What `corebound tune` prints, and what it refuses."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from corebound.analysis.tuning import analyse_tuning
from corebound.analysis.tuning_document import tune_document
from corebound.cli.commands.tune import print_result
from corebound.cli.output.console import Console
from support.tuning import BOUND, DEFAULT, ONE_CPU, ONE_THREAD, a_tuned_run, a_tuning


def printed(**changes: float) -> str:
    times_ms = {DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 8.0, ONE_CPU: 15.0} | changes
    out = io.StringIO()
    result = analyse_tuning(*a_tuned_run(times_ms))
    print_result(result, Path("records/r1.jsonl"), Console(file=out, width=120))
    return out.getvalue()


def test_the_recommendation_is_the_first_line() -> None:
    first, second, *_ = printed().splitlines()

    assert first.startswith("Use physical cores, one thread a core: 1.25× faster")
    assert second.startswith("With 95 % confidence")


def test_every_configuration_has_a_line_with_how_its_race_ended() -> None:
    text = printed()

    race = " ".join(text[text.index("Race") :].split())
    assert "dropped: 1.76× of physical cores, one thread a core" in race
    assert "stayed" in race
    assert "Not tried: One node: beyond `--max-candidates 4`" in race
    assert text.endswith("Records: records/r1.jsonl\n")


def test_the_document_names_the_settings_and_the_finalists() -> None:
    result, files = a_tuning()

    document = json.loads(json.dumps(tune_document(result, files)))

    assert document["advice"] == "change"
    assert document["settings"] == {"binding": "physical-cores", "threads": "per-core"}
    assert [one["cell"] for one in document["finalists"]][:2] == [BOUND, DEFAULT]
    assert document["finalists"][0]["winner_speedup_ratio"] is None
    assert {one["kind"] for one in document["files"]} >= {"shell", "env", "systemd"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--emit", "shell,fortran"), "--emit: `fortran` cannot be written."),
        (("--objective", "beauty"), "Invalid value for '--objective'"),
        (("--objective", "rate"), "--objective rate: a rate needs a bound of the latency."),
        (("--objective", "rate", "--bound", "p90=1s"), "--bound: `p90=1s` is not a bound"),
        (("--bound", "p99=1s"), "--bound: the objective `latency` has no bound."),
    ],
)
def test_a_wrong_option_is_explained(
    rejection_of: Callable[..., str], options: tuple[str, ...], said: str
) -> None:
    assert said in rejection_of("tune", "nap.yaml", *options)
