"""`corebound calibrate` and `regressions --confirm` with real launches."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.records import documents, jsonl
from corebound.records.calibration import Calibration
from corebound.records.jsonl import Stored
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from support.build import repeated, write_records
from support.commands import corebound
from support.repositories import SLEEP, sleeping_suite


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return a_suite(tmp_path)


def a_suite(folder: Path, *, seconds: float = 0.01, steps: str = SLEEP) -> Path:
    return sleeping_suite(
        folder,
        steps=steps,
        parameters={"seconds": seconds},
        matrix={"binding": ["one-cpu", "none"]},
        measure={"iterations": 10, "relaunch_disturbed": 0, "launches": {"min": 3, "max": 4}},
    )


def calibration_of(suite: Path) -> Calibration:
    (found,), faults = documents.CALIBRATIONS.read(suite / "reports" / "records")
    assert not faults
    return found


@pytest.mark.quick
def test_the_baseline_is_measured_twice_in_blocks_and_stored(suite: Path) -> None:
    code, out, err = corebound(suite, "calibrate", "nap.yaml", "--json", "--seed", "1")

    assert code == 0, err
    records = suite / "reports" / "records"
    assert list(jsonl.files(records)) == []
    (file,) = (records / "calibrations").glob("*/*.jsonl")
    launches = jsonl.read(file).launches
    # Four blocks, the most the profile makes, of both copies; the order is the seed's.
    assert sorted((launch.block, launch.cell.key) for launch in launches) == [
        (block, f"binding=none,copy={copy}") for block in range(4) for copy in "ab"
    ]
    calibration = calibration_of(suite)
    assert json.loads(out)["results"][0]["run"] == calibration.run
    assert calibration.cell == "binding=none"
    # A block with a disturbed launch does not count.
    assert calibration.blocks in {3, 4}
    floors = {noise.launches: noise.floor_ratio for noise in calibration.noise}
    assert list(floors) == [3, 4]  # the fewest and the most launches of the scenario
    assert 0 < floors[4] < floors[3]


def test_a_failed_calibration_is_reported_and_not_stored(suite: Path) -> None:
    (suite / "nap.py").write_text("def setup(*, seconds):\n    raise RuntimeError('no nap')\n")

    code, _, err = corebound(suite, "calibrate", "nap.yaml")

    assert code == 4
    assert "nap: fewer than 3 pairs of launches succeeded." in err
    assert documents.CALIBRATIONS.read(suite / "reports" / "records") == ((), ())


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """One real run of the suite, of which nights are made."""
    suite = a_suite(tmp_path_factory.mktemp("real"))
    code, _, err = corebound(suite, "run", "nap.yaml")
    assert code == 0, err
    (file,) = jsonl.files(suite / "reports" / "records")
    return jsonl.read(file)


def a_history(suite: Path, real: Stored, slower: float) -> Path:
    """Nights made of one real run: ten as it was, then four as if it were so much slower."""
    records = suite / "reports" / "records"
    for night in range(14):
        factor = (1.002 if night % 2 else 0.998) * (slower if night >= 10 else 1.0)
        write(records, real.run, real.launches, night, factor)
    return records


def write(records: Path, run: Run, launches: tuple[Launch, ...], night: int, factor: float) -> None:
    made = replace(run, id=f"night{night}", started_at=f"2026-01-{night + 1:02}T02:00:00Z")
    write_records(records, made, *repeated(launches, made.id, factor))


# Of short naps beside many other tests, disturbed launches do not count.
@pytest.mark.measures
def test_a_regression_that_does_not_reproduce_raises_no_alarm(suite: Path, real: Stored) -> None:
    records = a_history(suite, real, slower=3.0)
    nights = list(jsonl.files(records))
    before, _, _ = corebound(suite, "regressions")

    code, out, err = corebound(suite, "regressions", "--confirm", "--json")

    assert before == 1
    assert code == 0, (out, err)
    changes = json.loads(out)["changes"]
    # Both bindings stepped; each was asked about once, and naps are as long as ever.
    assert [one["confirmation"]["answer"] for one in changes] == ["refuted", "refuted"]
    assert (
        "4 launches" in changes[0]["confirmation"]["how"]
        or "3 launches" in changes[0]["confirmation"]["how"]
    )
    # What was measured again is no night of the history.
    assert list(jsonl.files(records)) == nights
    assert len(list(documents.CONFIRMATIONS.folder(records).glob("*/*.jsonl"))) == 2
    assert corebound(suite, "regressions")[0] == 0


def test_a_regression_that_reproduces_raises_an_alarm_and_names_both_sides(
    suite: Path, real: Stored
) -> None:
    a_history(suite, real, slower=3.0)
    a_suite(suite, steps=SLEEP.replace("sleep(seconds)", "sleep(3 * seconds)"))

    # As Markdown, because a terminal breaks the lines of a cell.
    code, out, _ = corebound(suite, "regressions", "--confirm", "--format", "md")

    assert code == 1
    assert "confirmed" in out
    assert "the good commit was not measured" in out


def test_a_changed_cell_cannot_be_confirmed(suite: Path, real: Stored) -> None:
    a_history(suite, real, slower=3.0)
    a_suite(suite, seconds=0.015)

    # As Markdown, because a terminal breaks the lines of a cell.
    code, out, _ = corebound(suite, "regressions", "--confirm", "--format", "md")

    assert code == 1
    assert "could not be measured again" in out
    assert "the scenario changed since" in out
