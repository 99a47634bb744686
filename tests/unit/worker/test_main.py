"""Specifies which corebound a workload imports if corebound itself is under test, and what else."""

import subprocess
import sys
from pathlib import Path

import corebound

ASK = """
import os, sys
from corebound.worker.__main__ import release_own_name, protocol
sys.path += [{folder!r}]
release_own_name()
import corebound
print(corebound.__file__)
print("PYTHONPATH" in os.environ, len(protocol.encode(protocol.Phase(name="x", duration_ns=1))) > 0)
"""


def asked(library: Path, environment: Path) -> list[str]:
    (library / "corebound").parent.mkdir(parents=True, exist_ok=True)
    (library / "corebound").symlink_to(Path(corebound.__file__).parent)
    # -S: none of the packages of the Python that runs the tests, which has a corebound too.
    done = subprocess.run(
        (sys.executable, "-S", "-c", ASK.format(folder=str(environment))),
        env={"PYTHONPATH": str(library)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_the_environments_own_corebound_is_imported_and_the_workers_keeps_working(
    tmp_path: Path,
) -> None:
    theirs = tmp_path / "site" / "corebound"
    theirs.mkdir(parents=True)
    (theirs / "__init__.py").touch()

    found, rest = asked(tmp_path / "library", tmp_path / "site")

    assert found == str(theirs / "__init__.py")
    assert rest == "False True"


def test_nothing_changes_if_the_project_is_not_corebound(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()

    found, rest = asked(tmp_path / "library", tmp_path / "site")

    assert found == str(tmp_path / "library" / "corebound" / "__init__.py")
    assert rest == "True True"


def test_a_worker_imports_no_slow_module_before_its_workload() -> None:
    script = (
        "import corebound.worker.__main__, corebound.worker.adapters.python, sys\n"
        "print(*sys.modules)"
    )
    slow = {"dataclasses", "inspect", "pathlib", "platform", "tempfile", "traceback", "asyncio"}
    done = subprocess.run(
        (sys.executable, "-S", "-c", script),
        env={"PYTHONPATH": str(Path(corebound.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )

    assert slow.isdisjoint(done.stdout.split())
