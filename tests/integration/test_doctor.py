"""`corebound doctor` on this machine, and on a folder that stands for another machine."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from corebound.machine.doctor.host_settings import STATE
from corebound.records import jsonl
from support.commands import corebound, output_of
from support.machine_trees import HEALTHY, THP, write_files
from support.repositories import counting_suite

SWAPPINESS = "proc/sys/vm/swappiness"
LAYOUT = "proc/sys/kernel/randomize_va_space"
SPOILT = {SWAPPINESS: "60\n", LAYOUT: "0\n", "sys/kernel/mm/ksm/run": "1\n"}
TUNED = {SWAPPINESS: "1\n", LAYOUT: "2\n", "sys/kernel/mm/ksm/run": "0\n"}


def doctor_in(root: Path, *arguments: str) -> str:
    """What is said of a folder that stands for another machine."""
    completed = corebound(root, "doctor", *arguments, "--root", str(root), in_process=True)
    assert completed.code == 0, completed.err
    return completed.out


def as_json(folder: Path) -> dict[str, dict[str, str | None]]:
    """What is said of this machine, by a process of its own: it looks at the others."""
    checks = json.loads(output_of(folder, "doctor", "--json"))["checks"]
    return {seen["check"]: seen for seen in checks}


def read(root: Path) -> dict[str, str]:
    return {path: (root / path).read_text() for path in SPOILT}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {**HEALTHY, **SPOILT, "sys/devices/system/cpu/online": "0-1\n"}
    for cpu in range(2):
        files[f"sys/devices/system/cpu/cpu{cpu}/topology/core_id"] = f"{cpu}\n"
    return write_files({path: text.encode() for path, text in files.items()}, tmp_path / "root")


@pytest.mark.quick
def test_checks_of_this_machine_match_what_its_kernel_reports(tmp_path: Path) -> None:
    found = as_json(tmp_path)

    for seen in found.values():
        assert seen["state"] in {"ok", "warning", "unavailable"}
        assert seen["value"]
        assert (seen["state"] == "warning") or seen["fix"] is None
    # The same facts, read here without any of our own code.
    for check, file in (
        ("governor", "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"),
        ("THP", f"/{THP}/enabled"),
        ("memory pressure", "/proc/pressure/memory"),
        ("autogroup", "/proc/sys/kernel/sched_autogroup_enabled"),
        ("NUMA balancing", "/proc/sys/kernel/numa_balancing"),
    ):
        assert (found[check]["state"] == "unavailable") == (not Path(file).exists()), check
    swappiness = Path(f"/{SWAPPINESS}").read_text().strip()
    assert str(found["swappiness"]["value"]).startswith(swappiness)


@pytest.mark.measures
def test_a_process_that_keeps_a_cpu_busy_is_named(tmp_path: Path) -> None:
    with subprocess.Popen((sys.executable, "-c", "while True: pass")) as busy:
        try:
            # Where others are busy too, another look may find it among the busiest.
            looks = (as_json(tmp_path)["busy processes"] for _ in range(8))
            found = next(check for check in looks if f"({busy.pid})" in str(check["value"]))
        finally:
            busy.kill()

    assert found["state"] == "warning"
    assert str(busy.pid) in str(found["fix"])
    # It is somebody's work: nothing stops it.
    assert found["undo"] is None


@pytest.mark.quick
def test_tuning_and_restoring_leaves_a_machine_as_it_was(root: Path) -> None:
    output = doctor_in(root, "--tune")

    assert read(root) == TUNED
    for path, value in (("vm.swappiness", "1"), ("kernel.randomize_va_space", "2")):
        assert f"sysctl -w {path}={value}" in output
    assert output.index("sysctl -w vm.swappiness=1") < output.index(f"/{SWAPPINESS}: 60 → 1")
    assert f"--tune has changed {len(SPOILT)} settings" in doctor_in(root)

    (root / SWAPPINESS).write_text("30\n")
    output = doctor_in(root, "--restore")

    assert read(root) == SPOILT
    assert "had been changed to 30" in output
    assert not (root / STATE).exists()
    assert "Nothing to restore" in doctor_in(root, "--restore")


def test_tuning_says_what_it_changes_and_changes_nothing_again(root: Path) -> None:
    output = json.loads(doctor_in(root, "--tune", "--json"))
    doctor_in(root, "--tune")
    doctor_in(root, "--restore")

    assert {one["path"]: (one["before"], one["after"]) for one in output["settings"]} == {
        path: (SPOILT[path].strip(), TUNED[path].strip()) for path in SPOILT
    }
    assert read(root) == SPOILT


# Root may write everywhere, so it becomes somebody else once it has imported everything.
AS_ANOTHER = """
import os, sys
from corebound.cli.commands import doctor
from corebound.cli.app import main
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
sys.argv = ["corebound", "doctor", "--tune", "--root", sys.argv[1]]
main()
"""


def test_without_permission_tuning_prints_the_commands(root: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        machine = Path(folder) / "machine"
        shutil.copytree(root, machine)
        for path in SPOILT:
            (machine / path).chmod(0o444)
        done = subprocess.run(
            (sys.executable, "-c", AS_ANOTHER, str(machine)),
            capture_output=True,
            text=True,
            check=False,
        )

        assert "Traceback" not in done.stderr
        assert done.returncode == 3, done.stderr
        for setting in ("vm.swappiness=1", "kernel.randomize_va_space=2"):
            assert f"    sysctl -w {setting}\n" in done.stderr
        assert "    echo 0 > /sys/kernel/mm/ksm/run\n" in done.stderr
        assert read(machine) == SPOILT


def test_tune_and_restore_together_are_refused(tmp_path: Path) -> None:
    code, _, err = corebound(tmp_path, "doctor", "--tune", "--restore", in_process=True)

    assert code == 2
    assert "exclude each other" in err


def test_a_run_prints_host_warnings_and_records_the_checks(tmp_path: Path) -> None:
    suite = counting_suite(
        tmp_path,
        measure={"iterations": 2, "relaunch_disturbed": 0, "launches": {"min": 2, "max": 2}},
    )
    with subprocess.Popen((sys.executable, "-c", "while True: pass")) as busy:
        try:
            code, out, err = corebound(suite, "run", "scenarios", "--json", timeout_s=60)
        finally:
            busy.kill()

    assert code == 0, err
    assert "warning: busy processes: " in err
    assert json.loads(out)["ending"] == "complete"
    (file,) = jsonl.files(suite / "reports" / "records")
    recorded = {seen.check: seen for seen in jsonl.read(file).run.preflight or ()}
    assert recorded["busy processes"].state == "warning"
    assert recorded["ASLR"].state in {"ok", "warning", "unavailable"}
    assert "environments" not in recorded
