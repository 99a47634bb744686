"""Records that contradict themselves are reported and skipped."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from typer.testing import CliRunner

from corebound.cli.app import app
from corebound.errors import InputError
from corebound.records import codec, documents, history_files, jsonl, validate
from corebound.records import traces as store_traces
from corebound.records.codec import UnreadableError
from corebound.records.history import HistoryPoints
from corebound.records.launch_record import Launch, TimeSlice
from corebound.records.run_record import Commit, EnvironmentLock
from corebound.records.telemetry import DisturbedIterations
from corebound.report.urls import commits_file
from support.build import (
    a_calibration,
    a_launch,
    a_point,
    a_profiled_launch,
    a_run,
    a_series,
    a_served,
    a_worker,
    an_answered,
)
from support.examples import examples


def alternated() -> Launch:
    """A launch whose 29 iterations after the first are held by six stints."""
    time_slices = tuple(
        TimeSlice(iterations=min(5, 29 - at), began_us=at) for at in range(0, 29, 5)
    )
    worker = replace(
        a_worker(),
        time_slices=time_slices,
        disturbed=(DisturbedIterations(first=3, last=4, by=("steal",)),),
    )
    return a_launch(workers=(worker,))


def served() -> Launch:
    return replace(a_launch(workers=(a_worker(wall_ns=()),)), served=a_served())


def at(*path: str | int, value: Any) -> Callable[[Any], None]:
    """What puts a value at this place of a document."""

    def put(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return put


ODD_LAUNCHES = {
    "stints beyond wall_ns": at("workers", 0, "stints", value=[[1000, 0]]),
    "a stint without iterations": at("workers", 0, "stints", 0, value=[0, 0]),
    "a negative time": at("workers", 0, "wall_ns", 3, value=-1),
    "no time at all": at("workers", 0, "wall_ns", value=[0] * 30),
    "CPU times of other iterations": at("workers", 0, "cpu_ns", value=[1]),
    "a huge time": at("duration_ns", value=10**400),
    "no slots": at("placement", "slots", value=[]),
    "a slot that is none": at("workers", 0, "slot", value=7),
    "no workers": at("workers", value=[]),
    "no placement": at("placement", value=None),
    "no moment": at("started_at", value="none"),
    "the year 14,000": at("started_at", value="14000-01-01T00:00:00Z"),
    "no zone": at("started_at", value="2026-01-01T00:00:00"),
    "disturbed beyond the last": at("workers", 0, "disturbed", 0, "last", value=30),
    "an axis twice": at("cell", "axes", value=[["a", "1"], ["a", "2"]]),
    "stays that go back": at("workers", 0, "threads", 0, "stays", 0, "to_ms", value=-5),
    "CPU -1": at("placement", "slots", 0, "cpus", value=[-1]),
    "an empty id": at("id", value=""),
}


ODD_SERVED = {
    "nothing answered": at("served", "answered", "ok", value=0),
    "no time answered": at("served", "answered", "duration_ns", value=0),
    "no histogram": at("served", "answered", "latencies", value="x"),
    "an empty histogram": at(
        "served", "answered", "latencies", value=an_answered(latencies_ns=()).latencies
    ),
    "windows of no length": lambda document: document["served"]["answered"].update(
        windows=[{"ok": 1, "errors": 0, "worst_ns": 1}], window_ns=0
    ),
}
ODD_RUNS = {
    "no moment of a run": at("started_at", value="none"),
    "no CPU": at("host", "topology", "cpus", value=[]),
    "a cache that is not there": at("host", "topology", "caches", value=[]),
    "a node of CPUs that are not there": at("host", "topology", "nodes", 0, "cpus", value=[99]),
    "a duplicate of a duplicate": at("duplicates", value={"s": {"a": "b", "b": "c"}}),
    "a huge seed": at("seed", value=10**30),
    "values nested too deeply": at("argv", value=json.loads("[" * 900 + "]" * 900)),
}
ODD = [
    *((odd, alternated(), name) for name, odd in ODD_LAUNCHES.items()),
    *((odd, served(), name) for name, odd in ODD_SERVED.items()),
    *((odd, a_run(), name) for name, odd in ODD_RUNS.items()),
]


@pytest.mark.parametrize(
    ("odd", "record"), [(odd, record) for odd, record, _ in ODD], ids=[name for *_, name in ODD]
)
def test_an_inconsistent_record_is_rejected(odd: Callable[[Any], None], record: Any) -> None:
    decode: Any = codec.decode_launch if isinstance(record, Launch) else codec.decode_run
    line = codec.encode(record)
    assert decode(line) == record
    document = json.loads(line)
    odd(document["record"])

    with pytest.raises(UnreadableError):
        decode(json.dumps(document).encode())


@pytest.mark.parametrize(
    "point",
    [
        a_point(at="none"),
        a_point(value=-1.0),
        a_point(value=float("inf")),
        a_point(bounds=(3.0, 2.0)),
        a_point(launches=(-1.0,)),
    ],
)
def test_an_inconsistent_history_is_reported(tmp_path: Path, point: Any) -> None:
    file = history_files.keep(
        "p", [a_series([], project="p", points=HistoryPoints.of([point]))], tmp_path
    )

    found, faults = history_files.read_all(tmp_path)

    assert found == ()
    assert [fault.file for fault in faults] == [str(file)]


def test_a_calibration_without_noise_is_reported(tmp_path: Path) -> None:
    file = documents.CALIBRATIONS.keep(a_calibration(noise=()), tmp_path)

    found, faults = documents.CALIBRATIONS.read(tmp_path)

    assert found == ()
    assert [fault.file for fault in faults] == [str(file)]


def test_builders_make_valid_records() -> None:
    validate.run(a_run())
    for launch in (alternated(), served(), a_profiled_launch(), a_launch(status="skipped")):
        validate.launch(launch)


def the_records(folder: Path) -> list[Path]:
    """Two runs of every kind of launch, and a history."""
    for number in range(2):
        run = replace(a_run(run_id=f"r{number}"), started_at=f"2026-01-0{number + 1}T00:00:00Z")
        file = jsonl.file_of(run, folder)
        appender = jsonl.begin(run, file)
        kinds = (alternated(), served(), a_profiled_launch())
        for place, launch in enumerate(kinds * 2):
            appender.append(replace(launch, id=f"l{place}", block=place // 3))
        appender.close()
    history_files.keep("p", [a_series([1.0, 2.0, 3.0], project="p")], folder)
    return sorted(file for file in folder.rglob("*.json*") if "cache" not in file.parts)


ODD_VALUES: list[Any] = [
    None, True, [], {}, "", "none", "../../x", "a" * 5000, "\0", "é\n", 0, -1, 1, 10**9, 2**63,
    10**400, 0.5, 1e-300, 1.7e308, [[]], [0], "2026-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00",
]  # fmt: skip


def mutate(document: Any, chance: random.Random) -> None:
    """Put something odd into the place of a value, or take it away, somewhere in a document."""
    while True:
        keys = [*document] if isinstance(document, dict) else [*range(len(document))]
        key = chance.choice(keys)
        below = document[key]
        if not isinstance(below, dict | list) or not below or chance.random() < 0.1:
            break
        document = below
    if chance.random() < 0.15:
        del document[key]
    else:
        document[key] = chance.choice(ODD_VALUES)


@pytest.fixture(scope="module")
def whole_records(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, bytes]:
    files = the_records(tmp_path_factory.mktemp("whole") / "records")
    return {file: file.read_bytes() for file in files}


@examples(12)
@given(seed=st.integers(0, 2**32))
def test_commands_survive_any_record(whole_records: dict[Path, bytes], seed: int) -> None:
    chance = random.Random(seed)  # no secret
    file = chance.choice([*whole_records])
    records = next(folder for folder in file.parents if folder.name == "records")
    words = chance.choice(
        [
            ("report", "--out", str(records.parent / "site")),
            ("regressions",),
            ("compare", "r0", "r1"),
            *(
                ("export", to, "--out", str(records.parent / to))
                for to in ("csv", "pyperf", "bencher")
            ),
        ]
    )
    lines = whole_records[file].splitlines(keepends=True)
    line = chance.randrange(len(lines))
    document = json.loads(lines[line])
    mutate(document, chance)
    lines[line] = json.dumps(document).encode() + b"\n"
    file.write_bytes(b"".join(lines))

    result = CliRunner().invoke(app, (*words, "--records", str(records)))

    file.write_bytes(whole_records[file])
    if isinstance(result.exception, Exception) and not isinstance(result.exception, InputError):
        result.exception.add_note(f"{words}: {file.name}:{line + 1}")
        raise result.exception


HOSTILE = [
    "../../../outside", "{}/outside", "..", "-rf", "a\0b", "a\nb", "é" * 5000, "x/../../../outside",
]  # fmt: skip


def test_no_record_id_escapes_its_folder(tmp_path: Path) -> None:
    inside = tmp_path / "here"
    commit = Commit(sha="a" * 40, subject="", committed_at="2026-01-01T00:00:00Z", dirty=False)
    a_trace = tmp_path / "trace.json"
    a_trace.write_text("[]")
    for place, hostile in enumerate(HOSTILE):
        name = hostile.format(tmp_path)
        host = replace(a_run().host, id=name)
        lock = EnvironmentLock(name=name, sha256="", python="3.11", packages=())
        cell = replace(a_launch().cell, environment=name)
        folder = inside / "records" / f"copied{place}"
        for number in range(2):
            run = replace(
                a_run(run_id=f"{name}{number}", host=host, commit=commit, environments=(lock,)),
                started_at=f"2026-01-0{number + 1}T00:00:00Z",
            )
            appender = jsonl.begin(run, folder / f"{number}.jsonl")
            profiled = replace(a_profiled_launch(cell=cell), id=name, trace=f"{name}.json.gz")
            for launch in (replace(alternated(), cell=cell), profiled):
                appender.append(launch)
            appender.close()
        store_traces.keep(a_trace, folder / "of-a-launch.traces", name)
    before = {file for file in tmp_path.rglob("*") if not file.is_relative_to(inside)}
    commands = [
        ("report", "--out", str(inside / "site")),
        *(("export", to, "--out", str(inside / "out" / to)) for to in ("asv", "csv", "pyperf")),
    ]

    results = [
        CliRunner().invoke(app, [*words, "--records", str(inside / "records")])
        for words in commands
    ]

    assert [result.exception for result in results] == [None] * 4
    assert {file for file in tmp_path.rglob("*") if not file.is_relative_to(inside)} == before
    # A machine and its results for each host, and the benchmarks of all.
    assert len([*(inside / "out" / "asv").rglob("*.json")]) == 2 * len(HOSTILE) + 1


def test_no_commit_hash_escapes_the_site() -> None:
    page = Path(commits_file("../p", "../../outside", "..\0/.."))

    assert page.parent == Path("compare")
    assert ".." not in page.parts
