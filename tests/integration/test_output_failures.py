"""Closed pipes, full disks and crashes: exit codes and messages of the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

COREBOUND = (sys.executable, "-m", "corebound")


@pytest.mark.parametrize("arguments", [("schema",), ("--version",), ("--help",)])
def test_a_closed_output_pipe_has_its_own_exit_code(arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run(
        (*COREBOUND, *arguments), stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)

    assert (result.returncode, result.stderr) == (141, "")


def test_a_closed_standard_error_ends_a_command_that_writes_to_it() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run((*COREBOUND, "bogus"), stderr=writing, check=False)
    os.close(writing)

    assert result.returncode == 141


@pytest.mark.parametrize("arguments", [("schema",), ("--version",), ("--help",)])
def test_a_full_disk_is_an_error_and_not_a_crash(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            (*COREBOUND, *arguments), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )

    assert result.returncode == 2
    assert result.stderr.startswith("standard output: cannot be written: No space left on device.")


def test_an_error_keeps_its_exit_code_where_it_cannot_be_printed() -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run((*COREBOUND, "check", "missing.yaml"), stderr=full, check=False)

    assert result.returncode == 2


@pytest.mark.parametrize(("closed", "code"), [(">&-", 141), ("<&-", 0), ("2>&-", 0)])
def test_a_descriptor_that_the_caller_closed_is_not_reused(closed: str, code: int) -> None:
    result = subprocess.run(
        ("sh", "-c", f'"$0" -m corebound topology {closed}', sys.executable),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.returncode, result.stderr) == (code, "")


CRASH = """
import sys
from corebound.__main__ import main
from corebound.scenario import json_schema
def crash(*_):
    {crash}
json_schema.schema_text = crash
sys.argv = ["corebound", "schema"]
main()
"""


@pytest.mark.parametrize(
    "crash",
    [
        "raise MemoryError",
        "crash()",  # too deep
        "raise EOFError",  # typer takes it for Ctrl-D and ends with 1
        "raise BrokenPipeError(32, 'of a child')",
        "from corebound import missing",
        "from corebound.workflow import process_pool as p; list(p.forked(lambda n: 1 // 0, [1]*9))",
        "import threading; t = threading.Thread(target=[].pop); t.start(); t.join(); return ''",
    ],
)
def test_a_crash_is_one_line_and_its_traceback_is_saved(crash: str, tmp_path: Path) -> None:
    result = subprocess.run(
        (sys.executable, "-c", CRASH.format(crash=crash)),
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    (saved,) = (tmp_path / "corebound").iterdir()
    assert result.returncode == 70
    assert result.stderr.startswith("corebound: internal error: ")
    assert result.stderr.endswith(f"{saved}\n")
    assert result.stderr.count("\n") == 1
    assert "Traceback" in saved.read_text()


def test_a_crash_during_import_is_reported_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ImportError('broken')")
    result = subprocess.run(
        COREBOUND,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 70
    assert "internal error: ImportError: broken" in result.stderr


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("place", ["{}", "weakref.finalize(type('T', (), {{}})(), lambda: {})"])
def test_an_interrupt_while_modules_load_ends_at_once(
    name: str, code: int, place: str, tmp_path: Path
) -> None:
    signalled = place.format(f"os.kill(os.getpid(), signal.{name})")
    (tmp_path / "typer.py").write_text(f"import os, signal, weakref\n{signalled}\n1 / 0")
    result = subprocess.run(
        COREBOUND,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.returncode, result.stderr) == (code, "")


def test_an_interrupt_that_a_library_replaces_is_no_crash(tmp_path: Path) -> None:
    crash = (
        "import os, signal\n"
        "    try: os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt: pass\n"
        "    raise SystemError"
    )
    result = subprocess.run(
        (sys.executable, "-c", CRASH.format(crash=crash)),
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.returncode, result.stderr) == (130, "")


def test_a_crash_is_reported_when_its_traceback_cannot_be_saved() -> None:
    crash = "import tempfile; tempfile.tempdir = '/proc/nowhere'; raise KeyError('::error::')"
    result = subprocess.run(
        (sys.executable, "-c", CRASH.format(crash=crash)),
        env={**os.environ, "XDG_STATE_HOME": "/proc/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )

    first, *rest = result.stderr.splitlines()
    assert result.returncode == 70
    assert "internal error: KeyError" in first
    assert "The traceback could not be saved" in first
    assert "Traceback (most recent call last):" in rest
