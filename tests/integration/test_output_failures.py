"""Closed pipes, full disks and crashes: exit codes and messages of the command line."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.quick

COREBOUND = (sys.executable, "-m", "corebound")
PRINTS = pytest.mark.parametrize("arguments", [("schema",), ("--version",), ("--help",)])


def ended(*command: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """How a command ended; capital settings are variables of its environment."""
    variables = {name: str(settings.pop(name)) for name in [*settings] if name.isupper()}
    return subprocess.run(
        command,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings},
        env={**os.environ, **variables},
        text=True,
        check=False,
    )


@pytest.fixture
def closed_pipe() -> Iterator[int]:
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@PRINTS
def test_a_closed_output_pipe_has_its_own_exit_code(
    closed_pipe: int, arguments: tuple[str, ...]
) -> None:
    result = ended(*COREBOUND, *arguments, stdout=closed_pipe)

    assert (result.returncode, result.stderr) == (141, "")


def test_a_closed_standard_error_ends_a_command_that_writes_to_it(closed_pipe: int) -> None:
    assert ended(*COREBOUND, "bogus", stderr=closed_pipe).returncode == 141


@PRINTS
def test_a_full_disk_is_an_error_and_not_a_crash(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        result = ended(*COREBOUND, *arguments, stdout=full)

    assert result.returncode == 2
    assert result.stderr.startswith("standard output: cannot be written: No space left on device.")


def test_an_error_keeps_its_exit_code_where_it_cannot_be_printed() -> None:
    with Path("/dev/full").open("wb") as full:
        assert ended(*COREBOUND, "check", "missing.yaml", stderr=full).returncode == 2


@pytest.mark.parametrize(("closed", "code"), [(">&-", 141), ("<&-", 0), ("2>&-", 0)])
def test_a_descriptor_that_the_caller_closed_is_not_reused(closed: str, code: int) -> None:
    result = ended("sh", "-c", f'"$0" -m corebound topology {closed}', sys.executable)

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
    result = ended(sys.executable, "-c", CRASH.format(crash=crash), XDG_STATE_HOME=tmp_path)

    (saved,) = (tmp_path / "corebound").iterdir()
    assert result.returncode == 70
    assert result.stderr.startswith("corebound: internal error: ")
    assert result.stderr.endswith(f"{saved}\n")
    assert result.stderr.count("\n") == 1
    assert "Traceback" in saved.read_text()


def test_a_crash_during_import_is_reported_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ImportError('broken')")
    result = ended(*COREBOUND, PYTHONPATH=tmp_path, XDG_STATE_HOME=tmp_path)

    assert result.returncode == 70
    assert "internal error: ImportError: broken" in result.stderr


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("place", ["{}", "weakref.finalize(type('T', (), {{}})(), lambda: {})"])
def test_an_interrupt_while_modules_load_ends_at_once(
    name: str, code: int, place: str, tmp_path: Path
) -> None:
    signalled = place.format(f"os.kill(os.getpid(), signal.{name})")
    (tmp_path / "typer.py").write_text(f"import os, signal, weakref\n{signalled}\n1 / 0")
    result = ended(*COREBOUND, PYTHONPATH=tmp_path, XDG_STATE_HOME=tmp_path)

    assert (result.returncode, result.stderr) == (code, "")


def test_an_interrupt_that_a_library_replaces_is_no_crash(tmp_path: Path) -> None:
    crash = (
        "import os, signal\n"
        "    try: os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt: pass\n"
        "    raise SystemError"
    )
    result = ended(sys.executable, "-c", CRASH.format(crash=crash), XDG_STATE_HOME=tmp_path)

    assert (result.returncode, result.stderr) == (130, "")


def test_a_crash_is_reported_when_its_traceback_cannot_be_saved() -> None:
    crash = "import tempfile; tempfile.tempdir = '/proc/nowhere'; raise KeyError('::error::')"
    result = ended(sys.executable, "-c", CRASH.format(crash=crash), XDG_STATE_HOME="/proc/nowhere")

    first, *rest = result.stderr.splitlines()
    assert result.returncode == 70
    assert "internal error: KeyError" in first
    assert "The traceback could not be saved" in first
    assert "Traceback (most recent call last):" in rest
