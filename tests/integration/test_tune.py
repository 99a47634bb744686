"""`corebound tune` with real launches: a planted best configuration is found, also after a kill."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from corebound.records import jsonl
from corebound.records.jsonl import Stored
from corebound.stats.interference import is_refused
from support import needs
from support.commands import corebound, output_of, start, until
from support.repositories import sleeping_suite

# 10 ms instead of 20 under one condition on the environment of the process: naps, so that other
# programs disturb no launch.
PLANTED = """\
import os, time

def setup():
    seconds = 0.01 if {condition} else 0.02
    return lambda: time.sleep(seconds)
"""
ONE_THREAD = "os.environ.get('OMP_NUM_THREADS') == '1'"
NOTHING_SET = "'OMP_NUM_THREADS' not in os.environ"

pytestmark = needs.two_cpus


def a_suite(folder: Path, condition: str, **document: Any) -> Path:
    return sleeping_suite(
        folder,
        steps=PLANTED.format(condition=condition),
        parameters={},
        measure={"iterations": 10, "relaunch_disturbed": 0, "launches": {"min": 3, "max": 4}},
        **document,
    )


def stored(suite: Path) -> Stored:
    (file,) = (suite / "reports" / "records" / "tunes").glob("*/*.jsonl")
    return jsonl.read(file)


def race_of_another_version(suite: Path) -> None:
    """Add a race for another objective whose scenario has a key that this version lacks."""
    (file,) = (suite / "reports" / "records" / "tunes").glob("*/*.jsonl")
    text = file.read_text().replace('"latency"', '"cost"').replace('"workload":', '"workloads":')
    file.with_name(f"{file.stem[:-1]}x.jsonl").write_text(text)


@pytest.mark.quick
def test_a_planted_best_configuration_is_recommended_with_its_gain(tmp_path: Path) -> None:
    suite = a_suite(tmp_path, ONE_THREAD)

    said = json.loads(output_of(suite, "tune", "nap.yaml", "--max-candidates", "4", "--json"))

    assert said["advice"] == "change"
    assert said["settings"]["threads"] == "1"
    default = next(one for one in said["finalists"] if one["cell"] == said["default"])
    low, _ = default["winner_speedup_interval"]
    assert low > 1
    # Of the six fresh ones only those that others disturbed do not count.
    assert default["attempts"] == 6
    own = [one for one in stored(suite).launches if one.cell.key == default["cell"]]
    fresh = [one for one in own if one.kind == "measure"][-6:]
    assert all(one.status == "ok" or is_refused(one) for one in fresh)
    assert default["launches"] == sum(one.status == "ok" for one in fresh)
    # Nothing of it is a nightly run.
    assert list(jsonl.files(suite / "reports" / "records")) == []


@pytest.mark.quick
def test_where_the_default_is_best_it_is_kept(tmp_path: Path) -> None:
    suite = a_suite(tmp_path, NOTHING_SET)

    said = output_of(suite, "tune", "nap.yaml", "--max-candidates", "4")

    assert said.startswith("Keep the default")


@pytest.mark.measures
def test_a_budget_covers_all_candidates_and_their_files(tmp_path: Path) -> None:
    suite = a_suite(tmp_path, ONE_THREAD)
    race = ("tune", "nap.yaml", "--max-candidates", "5", "--budget", "25s", "--emit", "shell")

    began_s = time.monotonic()
    said = json.loads(output_of(suite, *race, "--json"))

    assert time.monotonic() - began_s < 1.1 * 25 + 5
    assert said["tried"] == said["candidates"]
    assert said["settings"]["threads"] == "1"
    (proof,) = said["files"]
    assert proof["state"] in {"launched", "written"}


def test_files_are_launched_through_and_a_recommendation_is_verified(tmp_path: Path) -> None:
    suite = a_suite(tmp_path, ONE_THREAD)
    race = ("tune", "nap.yaml", "--max-candidates", "3", "--emit", "shell,env,python,systemd")

    files = json.loads(output_of(suite, *race, "--json"))["files"]

    evidence = {one["kind"]: one["evidence"] for one in files}
    # A busy host may make one seem slower, but all ran where and with the threads they should.
    for kind in ("shell", "env", "python"):
        assert evidence[kind].startswith("4 of 4 launches through it ran on the requested CPUs")
    assert next(one["state"] for one in files if one["kind"] == "systemd") == "checked"
    assert "CPUAffinity" in (suite / "tuned/NAME.service.d/corebound.conf").read_text() or (
        "taskset" not in (suite / "tuned/corebound.sh").read_text()
    )

    race_of_another_version(suite)
    code, out, err = corebound(suite, "tune", ".", "--verify", "--json")
    (verified,) = json.loads(out)["recommendations"]
    assert (code, verified["answer"]) == (0, "holds")
    assert "`workloads`" in err
    assert verified["differences"] == []
    output_of(suite, "report")
    (page,) = (suite / "reports" / "site" / "tune").glob("*.html")
    assert "The recommendation holds: " in page.read_text()


@pytest.mark.quick
def test_a_nightly_run_says_which_recommendations_are_lost(tmp_path: Path) -> None:
    suite = a_suite(tmp_path, ONE_THREAD)
    night = ("nightly", "nap.yaml", "--profile", "quick", "--verify", "--json")
    first = json.loads(output_of(suite, *night))
    assert (first["steps"]["verify"], first["recommendations"]) == (2, [])
    assert "No recommendation was checked: no race " in first["text"]

    output_of(suite, "tune", "nap.yaml", "--max-candidates", "3", "--json")
    (suite / "nap.py").write_text(PLANTED.format(condition=NOTHING_SET))
    code, out, err = corebound(suite, *night)

    second = json.loads(out)
    assert code == 1, err
    assert second["status"] == "recommendation lost"
    assert [each["answer"] for each in second["recommendations"]] == ["lost"]
    assert "The default is better now." in second["text"]


def test_a_killed_race_is_resumed_without_repetition(tmp_path: Path) -> None:
    suite = a_suite(tmp_path, ONE_THREAD)
    process = start(suite, "tune", "nap.yaml", "--max-candidates", "3")
    races = (suite / "reports" / "records" / "tunes").glob
    until(lambda: [*races("*/*.jsonl")] and len(stored(suite).launches) >= 4)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = stored(suite).launches

    code, out, err = corebound(
        suite, "tune", "nap.yaml", "--max-candidates", "3", "--resume", "--json"
    )

    assert code == 0, err
    after = stored(suite).launches
    assert after[: len(before)] == before
    places = [(launch.block, launch.cell.key) for launch in after if launch.status != "skipped"]
    assert len(set(places)) == len(places)
    assert json.loads(out)["settings"]["threads"] == "1"


def test_a_parameter_that_changes_the_work_must_be_fixed_or_named(tmp_path: Path) -> None:
    suite = a_suite(tmp_path, ONE_THREAD, matrix={"parameters": {"seconds": [0.01, 0.02]}})
    (suite / "nap.py").write_text(
        "import time\n\ndef setup(*, seconds):\n    return lambda: time.sleep(seconds)\n"
    )

    code, _, err = corebound(suite, "tune", "nap.yaml", in_process=True)
    assert code == 2
    assert "--only seconds=0.01" in err
    assert "--vary seconds" in err

    said = json.loads(
        output_of(suite, "tune", "nap.yaml", "--vary", "seconds", "--max-candidates", "3", "--json")
    )
    assert said["settings"]["seconds"] == "0.01"


def test_each_load_has_its_own_recommendation_and_their_common_one_its_cost(tmp_path: Path) -> None:
    suite = a_suite(
        tmp_path, ONE_THREAD, matrix={"binding": ["none"], "parameters": {"batch": [1, 8]}}
    )
    (suite / "nap.py").write_text(
        "import os, time\n\ndef setup(*, batch):\n"
        f"    seconds = 0.01 if ({ONE_THREAD}) == (batch == 1) else 0.02\n"
        "    return lambda: time.sleep(seconds)\n"
    )
    race = ("tune", "nap.yaml", "--each", "batch", "--max-candidates", "3")

    said = json.loads(output_of(suite, *race, "--json"))

    one, eight = said["loads"]
    assert (one["load"], eight["load"]) == ({"batch": "1"}, {"batch": "8"})
    assert one["settings"]["threads"] == "1"
    assert eight["settings"]["threads"] == "default"
    # Whichever is common costs one of the loads twice the time.
    assert said["common"]["state"] == "several"
    cost = next(one for one in said["common"]["costs"] if one["recommended_speedup_ratio"])
    assert cost["recommended_speedup_interval"][0] > 1.02

    # Nothing is launched again, and each page names both loads.
    files = sorted(suite.glob("reports/records/tunes/*/*.jsonl"))
    assert json.loads(output_of(suite, *race, "--resume", "--json")) == said
    assert sorted(suite.glob("reports/records/tunes/*/*.jsonl")) == files
    output_of(suite, "report")
    pages = list(suite.glob("reports/site/tune/*.html"))
    assert len(pages) == 2
    assert all("batch=1" in page.read_text() and "batch=8" in page.read_text() for page in pages)
