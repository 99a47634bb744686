"""Commands and their surroundings: parameters, preparation, files, variables, directories."""

import json
import sys
from pathlib import Path

import pytest

from support.commands import corebound

SCENARIO = """\
schema: 1
name: copying
title: A command
question: Where does it run?
workload:
  command: [./copy.sh, "{rows}"]
  prepare: [mkdir, fresh]
  cleanup: [touch, ROOT/cleaned]
files: [data/]
env: {KIND: given}
pass_env: [PASSED]
matrix:
  parameters: {rows: [1, 2]}
  env: {LABEL: [null, "x"]}
measure: {iterations: 2, launches: {min: 2, max: 2}, relaunch_disturbed: 0, alternate: never}
"""
# Fails on a second call without preparation; appends what it sees.
SCRIPT = """\
#!/bin/sh -e
rmdir fresh
head -n "$1" data/rows.txt > copied
sleep 0.05
echo "$1 $(wc -l < copied) $KIND $PASSED ${LABEL-unset} ${DROPPED-unset}" >> ROOT/seen
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "suite" / "data").mkdir(parents=True)
    (tmp_path / "suite" / "data" / "rows.txt").write_text("a\nb\nc\n")
    script = tmp_path / "suite" / "copy.sh"
    script.write_text(SCRIPT.replace("ROOT", str(tmp_path)))
    script.chmod(0o755)
    (tmp_path / "suite" / "copying.yaml").write_text(SCENARIO.replace("ROOT", str(tmp_path)))
    return tmp_path


@pytest.mark.quick
def test_a_command_gets_its_parameters_files_and_variables(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSED", "on")
    monkeypatch.setenv("DROPPED", "on")

    document = json.loads(corebound(suite, "run", "suite/copying.yaml", "--json").out)

    assert document["launches"] == {"ok": 8}
    assert set((suite / "seen").read_text().splitlines()) == {
        f"{rows} {rows} given on {label} unset" for rows in (1, 2) for label in ("unset", "x")
    }
    assert (suite / "cleaned").exists()
    assert not (suite / "suite" / "copied").exists()


def test_a_shell_and_the_scenarios_folder_on_request(suite: Path) -> None:
    (suite / "suite" / "piped.yaml").write_text(
        """\
schema: 1
name: piped
title: A pipe
question: Does it run?
workload: {shell: true, command: "sort -r {file} | head -n 1 > first"}
parameters: {file: data/rows.txt}
working_directory: scenario
measure: {iterations: 2, launches: {min: 2, max: 2}, relaunch_disturbed: 0}
"""
    )

    document = json.loads(corebound(suite, "run", "suite/piped.yaml", "--json").out)

    assert document["launches"] == {"ok": 2}
    assert (suite / "suite" / "first").read_text() == "c\n"


def test_resume_and_reproduce_keep_the_variables_of_the_command_line(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSED", "on")
    seen = suite / "seen"
    file = suite / "suite" / "copying.yaml"
    file.write_text(file.read_text().replace("{min: 2, max: 2}", "{min: 8, max: 8}"))
    arguments = ("run", "suite/copying.yaml", "--env", "DROPPED=set", "--budget", "4s", "--json")
    started = corebound(suite, *arguments)
    assert started.code in {0, 5}  # four seconds decide little
    before = json.loads(started.out)["launches"]
    assert 0 < before["ok"] < 32

    resumed = corebound(suite, "run", "--resume", "--json")

    assert resumed.code == 0, resumed.err
    document = json.loads(resumed.out)
    # The budget alone ends launches. A baseline is launched again beside cells that it left out.
    assert document["launches"] == before | {"ok": document["launches"]["ok"]}
    assert document["launches"]["ok"] >= 32
    assert {line.split()[-1] for line in seen.read_text().splitlines()} == {"set"}

    seen.unlink()
    monkeypatch.delenv("PASSED")
    cell = document["cells"][0]["id"]
    reproduced = corebound(suite, "reproduce", document["run"], "--cell", cell)

    assert reproduced.code in {0, 1}, reproduced.err
    assert "PASSED" in reproduced.err
    # `on`, which the shell no longer has, is missing from the line.
    assert {tuple(line.split()[2:]) for line in seen.read_text().splitlines()} == {
        ("given", "unset", "set")
    }


NAMED = """\
schema: 1
name: named
title: A program
question: Is it found?
workload: {command: [own-tool], prepare: [sh, -c, "command -v python > which"]}
environment: ENVIRONMENT
working_directory: scenario
measure: {iterations: 2, launches: {min: 2, max: 2}, relaunch_disturbed: 0, alternate: never}
"""


def test_a_program_is_found_in_the_environment_that_the_scenario_names(tmp_path: Path) -> None:
    programs = tmp_path / "own" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(sys.executable)
    (programs / "own-tool").write_text("#!/bin/sh\n")
    (programs / "own-tool").chmod(0o755)
    file = tmp_path / "named.yaml"
    file.write_text(NAMED.replace("ENVIRONMENT", "{python: own}"))

    document = json.loads(corebound(tmp_path, "run", "named.yaml", "--json").out)

    assert document["launches"] == {"ok": 2}
    assert (tmp_path / "which").read_text() == f"{programs}/python\n"

    file.write_text(NAMED.replace("ENVIRONMENT", "host"))
    completed = corebound(tmp_path, "run", "named.yaml")

    assert completed.code == 3
    assert "`own-tool` is not on PATH" in completed.out + completed.err
