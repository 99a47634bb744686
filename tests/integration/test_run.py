"""`corebound run` as a process: killed, resumed, refused, interrupted."""

import fcntl
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from corebound.machine.procfs import processes_below
from corebound.machine.topology import CpuId, cpu_list
from corebound.records import jsonl
from corebound.records.launch_record import Launch
from support import commands, needs
from support.commands import until
from support.repositories import sleeping_suite, write_scenario

BINDINGS = ("none", "one-cpu", "smt-siblings")
# The helper in a session of its own is what a framework's worker pool can come to. Each launch
# waits half a second for it, so only tests of what is left behind have one.
NAPS = """\
import pathlib, subprocess, time

FIRST = pathlib.Path(__file__).with_name("first")

def setup(*, seconds):
    first = not FIRST.exists()
    FIRST.touch()
    if HAS_HELPER:
        subprocess.Popen(["setsid", "sleep", "977"])
    # A run appears with its first launch, which is short.
    return lambda: time.sleep(min(seconds, 0.01) if first else seconds)
"""
# A run that lasts for as long as the test wants.
# The first launch ends at once, since a run appears with it; the others wait for a file.
AWAITS_GO = """\
import pathlib, time

GO, FIRST = (pathlib.Path(__file__).with_name(name) for name in ("go", "first"))

def setup(*, seconds):
    first = not FIRST.exists()
    FIRST.touch()
    def step():
        while not (first or GO.exists()):
            time.sleep(seconds)
    return step
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return sleeping_suite(
        tmp_path,
        matrix={"binding": list(BINDINGS)},
        measure={
            "iterations": 10, "relaunch_disturbed": 0, "launches": {"min": 3, "max": 3},
        },
    )  # fmt: skip


@pytest.fixture
def with_helper(suite: Path) -> Path:
    """The suite; each of its launches leaves a process behind."""
    (suite / "nap.py").write_text(NAPS.replace("HAS_HELPER", "True"))
    return suite


def changed(suite: Path, stem: str, **keys: Any) -> None:
    """Beside nap.yaml, or in its place, one that differs in these keys; None leaves one out."""
    document = {**yaml.safe_load((suite / "nap.yaml").read_text()), **keys}
    write_scenario(
        suite / f"{stem}.yaml", {key: one for key, one in document.items() if one is not None}
    )


@pytest.fixture
def long(suite: Path) -> Path:
    """The suite with long.yaml, whose launches but the first take six seconds each."""
    changed(suite, "long", name="long", parameters={"seconds": 0.6})
    (suite / "nap.py").write_text(NAPS.replace("HAS_HELPER", "False"))
    return suite


def start(suite: Path, *arguments: str) -> subprocess.Popen[str]:
    return commands.start(suite, "run", *arguments)


def run(suite: Path, *arguments: str) -> tuple[int, str, str]:
    return commands.corebound(suite, "run", *arguments)


def records(suite: Path) -> list[jsonl.Stored]:
    return [jsonl.read(file) for file in jsonl.files(suite / "reports" / "records")]


def launched(stored: jsonl.Stored) -> Counter[tuple[int, str, str]]:
    return Counter((launch.block, launch.cell.key, launch.status) for launch in stored.launches)


# Every launch of the suite. Without SMT there are no siblings, and that cell is skipped.
COMPLETE = Counter(
    (block, f"binding={mode}", "ok")
    for block in range(3)
    for mode in BINDINGS
    if mode != "smt-siblings" or needs.HAS_SMT
)
if not needs.HAS_SMT:
    COMPLETE[0, "binding=smt-siblings", "skipped"] = 1
# And those of one of its cells.
ONLY_ONE = ("--only", "binding=none")
ONE_CELL = Counter((block, "binding=none", "ok") for block in range(3))


def left_of(suite: Path) -> Iterator[str]:
    """Processes that still belong to a run of this suite, by what they were started with."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            environ = (entry / "environ").read_bytes()
            cmdline = (entry / "cmdline").read_bytes()
            # A launch knows its folder by a short name; where it works is the folder itself.
            works_in = os.fsencode((entry / "cwd").readlink())
        except OSError:
            continue
        if str(suite).encode() in environ + cmdline + works_in and cmdline:
            yield cmdline.replace(b"\0", b" ").decode(errors="replace")


def folders_left_of(suite: Path) -> list[Path]:
    """What runs of this suite left where temporary files go, short names for it included."""
    private = commands.private_tmp(suite)
    names = [path for path in Path("/tmp").glob("corebound-*") if path.is_symlink()]
    return [*private.glob("corebound-*"), *(n for n in names if n.readlink().parent == private)]


def wait_until_gone(suite: Path) -> list[str]:
    until(lambda: not list(left_of(suite)), within_s=30)
    return list(left_of(suite))


def wait_until_measuring(suite: Path) -> None:
    """Until the first launch is recorded; the next follows at once."""
    files = (suite / "reports" / "records").glob
    until(lambda: any(file.stat().st_size for file in files("*/*.jsonl")))
    time.sleep(0.5)


def wait_until_held(suite: Path) -> None:
    """Until a run holds its record file."""
    (file,) = jsonl.files(suite / "reports" / "records")

    def is_held() -> bool:
        with file.open("rb") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    until(is_held)


def supervisor_of(process: subprocess.Popen[str]) -> int:
    """The supervisor of a run's launches."""

    def supervisors() -> list[int]:
        below = processes_below(process.pid)
        return [p for p in below if b"launch.supervisor" in Path(f"/proc/{p}/cmdline").read_bytes()]

    return until(supervisors)[0]


@pytest.mark.quick
def test_a_run_launches_every_cell_and_prints_the_results(with_helper: Path) -> None:
    code, out, _ = run(with_helper, "nap.yaml", "--json")

    assert code == 0
    document = json.loads(out)
    assert document["ending"] == "complete"
    assert document["launches"] == Counter(status for _, _, status in COMPLETE)
    assert {cell["id"] for cell in document["cells"]} >= {
        "nap[binding=none]",
        "nap[binding=one-cpu]",
    }
    (stored,) = records(with_helper)
    assert launched(stored) == COMPLETE
    assert wait_until_gone(with_helper) == []


def test_configurations_that_are_the_same_here_are_measured_once(suite: Path) -> None:
    cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    matrix = {"binding": ["none", "one-cpu", {"cpus": cpus}]}
    measure = {"iterations": 10, "relaunch_disturbed": 0, "launches": {"min": 2, "max": 2}}
    changed(suite, "nap", matrix=matrix, measure=measure, baseline={"binding": {"cpus": cpus}})

    code, out, err = run(suite, "nap.yaml")

    assert code == 0
    assert "1 of 3 configurations" in err
    (stored,) = records(suite)
    bound = f"binding=cpus:{cpu_list(CpuId(cpu) for cpu in os.sched_getaffinity(0))}"
    assert stored.run.duplicates == {"nap": {"binding=none": bound}}
    assert launched(stored) == Counter(
        (block, key, "ok") for block in range(2) for key in (bound, "binding=one-cpu")
    )
    assert f"{bound.removeprefix('binding=')} | none" in out
    # A complete run has nothing to resume.
    assert run(suite, "nap.yaml", "--resume")[0] == 0
    assert records(suite) == [stored]


@pytest.mark.quick
def test_a_run_killed_by_sigkill_leaves_nothing_and_resumes_without_repetition(
    with_helper: Path,
) -> None:
    chance = random.Random(0)
    arguments = ["nap.yaml", "--seed", "7"]
    for _ in range(3):
        process = start(with_helper, *arguments)
        time.sleep(0.6 + chance.random() * 1.5)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert wait_until_gone(with_helper) == []
        arguments = ["nap.yaml", "--seed", "7", "--resume"]
    before = [launch for stored in records(with_helper) for launch in stored.launches]

    code, _, err = run(with_helper, *arguments)

    assert code == 0, err
    (stored,) = records(with_helper)
    assert launched(stored) == COMPLETE
    assert stored.launches[: len(before)] == tuple(before)
    assert wait_until_gone(with_helper) == []
    # A run that is killed before its supervisor starts leaves its folder to the next run.
    assert folders_left_of(with_helper) == []


def test_a_run_whose_supervisor_was_killed_leaves_nothing(long: Path, with_helper: Path) -> None:
    # Of launches that started at once, the others go on.
    process = start(long, "long.yaml", *ONLY_ONE)
    wait_until_measuring(long)
    os.kill(supervisor_of(process), signal.SIGKILL)
    _, err = process.communicate(timeout=60)

    assert process.returncode == 4, err
    assert "--resume" in err
    assert "Traceback" not in err
    assert folders_left_of(long) == []
    # Also what no worker's end had ended with it.
    assert list(left_of(long)) == []


def test_the_next_run_removes_what_a_killed_runner_and_supervisor_left(long: Path) -> None:
    process = start(long, "long.yaml", *ONLY_ONE)
    wait_until_measuring(long)
    for pid in (supervisor_of(process), process.pid):
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    assert folders_left_of(long) != []

    assert run(long, "nap.yaml", *ONLY_ONE)[0] == 0

    assert folders_left_of(long) == []


def test_two_processes_that_resume_one_run_lose_nothing(suite: Path) -> None:
    (suite / "nap.py").write_text(AWAITS_GO)
    process = start(suite, "nap.yaml", *ONLY_ONE)
    wait_until_measuring(suite)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    first = start(suite, "--resume", "--unlocked")
    wait_until_held(suite)

    code, _, err = run(suite, "--resume", "--unlocked")
    (suite / "go").touch()
    _, first_err = first.communicate(timeout=120)

    assert code == 3
    assert f"process {first.pid}" in err
    assert first.returncode == 0, first_err
    (stored,) = records(suite)
    assert stored.faults == ()
    assert launched(stored) == ONE_CELL


def test_a_workload_can_create_sockets_under_a_long_temporary_path(suite: Path) -> None:
    # As the loaders of torch's DataLoader hand over a batch.
    (suite / "nap.py").write_text(
        "from multiprocessing.reduction import DupFd\n\n"
        "def setup(*, seconds):\n    DupFd(0)\n    return lambda: None\n"
    )
    # No address of a socket has more than 107 bytes.
    longer = commands.private_tmp(suite) / ("x" * 107)
    longer.mkdir()

    code, _, err = commands.corebound(suite, "run", "nap.yaml", *ONLY_ONE, TMPDIR=str(longer))

    assert code == 0, err
    assert list(longer.glob("corebound-*")) == []


def test_ctrl_c_ends_the_launch_and_keeps_the_measured_launches(
    long: Path, with_helper: Path
) -> None:
    process = start(long, "long.yaml", *ONLY_ONE)
    wait_until_measuring(long)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)

    assert process.returncode == 130
    assert "--resume" in err
    assert "Traceback" not in err
    assert wait_until_gone(long) == []


# Naps of a launch that lasts longer than it takes to see that the one before is recorded.
INTERRUPTIBLE = {"seconds": 0.05}


def interrupt(suite: Path, *arguments: str) -> Path:
    """Start a run and kill it when it has recorded a launch; its file."""
    before = set(jsonl.files(suite / "reports" / "records"))
    process = start(suite, *arguments)

    def fresh() -> list[Path]:
        new = set(jsonl.files(suite / "reports" / "records")) - before
        return [file for file in new if file.read_bytes().count(b"\n") > 1]

    (file,) = until(fresh)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert wait_until_gone(suite) == []
    return file


def set_back(file: Path) -> Path:
    """A record file as it is called and dated when the clock was set back before its run."""
    earlier = file.with_name(f"20010101T000000Z-{file.name.partition('-')[2]}")
    file.rename(earlier)
    os.utime(earlier, (978307200, 978307200))
    return earlier


@pytest.mark.parametrize("arguments", [(), ("nap.yaml", *ONLY_ONE)])
def test_resume_prefers_the_interrupted_run_to_a_later_complete_one(
    suite: Path, arguments: tuple[str, ...]
) -> None:
    changed(suite, "nap", parameters=INTERRUPTIBLE)
    assert run(suite, "nap.yaml", *ONLY_ONE)[0] == 0
    (complete,) = jsonl.files(suite / "reports" / "records")
    before = complete.read_bytes()
    truncate = set_back(interrupt(suite, "nap.yaml", *ONLY_ONE))
    launches = jsonl.read(truncate).launches

    code, _, err = run(suite, *arguments, "--resume")

    assert code == 0, err
    assert str(truncate.name) in err.replace("\n", "")
    assert complete.read_bytes() == before
    stored = jsonl.read(truncate)
    assert stored.launches[: len(launches)] == launches
    assert launched(stored) == ONE_CELL


def test_resume_without_files_skips_a_complete_run_of_a_changed_scenario(long: Path) -> None:
    changed(long, "other", name="other", measure={"launches": {"min": 2, "max": 2}})
    assert run(long, "other.yaml", *ONLY_ONE)[0] == 0
    changed(long, "nap", parameters=INTERRUPTIBLE)
    truncate = set_back(interrupt(long, "nap.yaml", *ONLY_ONE))
    changed(long, "other", name="other", measure={"launches": {"min": 3, "max": 3}})

    code, _, err = run(long, "--resume")

    assert code == 0, err
    assert launched(jsonl.read(truncate)) == ONE_CELL


def test_resume_reports_an_interrupted_run_of_a_changed_scenario(long: Path) -> None:
    # It is the latest; the one before it could go on and is not meant.
    older = set_back(interrupt(long, "long.yaml", *ONLY_ONE))
    before = older.read_bytes()
    changed(long, "nap", parameters=INTERRUPTIBLE)
    interrupt(long, "nap.yaml", *ONLY_ONE)
    changed(long, "nap", parameters={"seconds": 0.003})

    code, _, err = run(long, "--resume")

    assert code == 2
    assert "a scenario has changed" in err
    assert older.read_bytes() == before


def test_a_resumed_run_keeps_its_budget(suite: Path) -> None:
    changed(suite, "nap", parameters=INTERRUPTIBLE)
    file = interrupt(suite, "nap.yaml", *ONLY_ONE, "--budget", "50m")

    code, _, err = run(suite, "--resume", "--budget", "1h")

    assert code == 0, err
    stored = jsonl.read(file)
    assert stored.run.budget_s == 50 * 60
    assert launched(stored) == ONE_CELL


def test_only_one_run_measures_at_a_time(
    long: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first = start(long, "long.yaml", *ONLY_ONE)
    wait_until_measuring(long)
    elsewhere = str(tmp_path_factory.mktemp("elsewhere"))

    code, _, err = commands.corebound(long, "run", "nap.yaml", TMPDIR=elsewhere)
    waiting = start(long, "nap.yaml", *ONLY_ONE, "--wait", "10m")
    assert waiting.stderr is not None
    message = waiting.stderr.readline()
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=30)

    assert code == 3, err
    assert "another run is measuring" in err
    assert f"process {first.pid}" in err
    assert f"Waiting for the run of process {first.pid}" in message
    waiting.communicate(timeout=60)
    assert waiting.returncode == 0


def test_failed_launches_are_recorded_and_set_the_exit_code(suite: Path) -> None:
    (suite / "nap.py").write_text("def setup(*, seconds):\n    raise ValueError('no bed')\n")

    code, _, err = run(suite, "nap.yaml")

    assert code == 4
    assert "no bed" in err
    (stored,) = records(suite)
    failed: list[Launch] = [launch for launch in stored.launches if launch.status == "failed"]
    assert failed
    assert all("no bed" in str(one.reason) and "Traceback" in one.log for one in failed)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "no scenario named"),
        (("missing.yaml",), "cannot be read"),
        (("nap.yaml", "--budget", "soon"), "is not a duration"),
        (("nap.yaml", "--budget", "0s"), "--budget"),
        (("nap.yaml", "--only", "binding=nowhere"), "nowhere"),
        (("--resume",), "no run of this host to resume"),
    ],
)
def test_bad_input_is_an_error_message(
    suite: Path, arguments: tuple[str, ...], expected: str
) -> None:
    code, _, err = run(suite, *arguments)

    assert code == 2
    assert expected in " ".join(err.split())
    assert not (suite / "reports").exists()


@pytest.mark.quick
def test_results_go_to_standard_output_and_progress_to_standard_error(suite: Path) -> None:
    code, out, err = run(suite, "nap.yaml", *ONLY_ONE)

    assert code == 0, err
    assert "A nap" in out
    assert "Records: reports/records/" in out
    assert "block 1" in err
    assert "Records:" not in err


def test_what_the_host_lacks_sets_the_exit_code(suite: Path) -> None:
    (suite / "environments").mkdir()
    (suite / "environments" / "numpy-bare.txt").write_text("numpy\n")
    changed(suite, "bare", name="bare", environment="numpy-bare")
    changed(suite, "big", matrix={"binding": [{"cpus": "60000"}]}, baseline=None)

    bare, big = run(suite, "nap.yaml", "bare.yaml", *ONLY_ONE), run(suite, "big.yaml")

    assert (bare[0], big[0]) == (3, 3)
    assert "environment `numpy-bare` has not been made." in bare[2]
    assert "60000" in big[2]
