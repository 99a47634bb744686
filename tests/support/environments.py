"""Framework environments: run code in one, launch a cell of it, run a scenario through the CLI."""

import json
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from corebound.launch import environments
from corebound.launch.launch import LaunchResult
from corebound.machine import discovery
from corebound.planning.host_support import HostCapabilities
from corebound.planning.plan import PlannedCell, plan_cells
from corebound.records import jsonl
from corebound.records.launch_record import Kind, Launch
from corebound.runner import Job, launcher
from corebound.scenario.loader import load_document
from corebound.scenario.matrix import expand
from support import needs
from support.commands import corebound
from support.paths import ROOT


def python_of(name: str) -> Path:
    """The environment's Python; where it has not been made, the test is skipped."""
    found = environments.find(name, ROOT)
    if found is None:
        needs.missing(f"environment {name} has not been made: corebound environment make {name}")
    return found.python


def in_environment(name: str, code: str, *, cwd: Path, **variables: str) -> str:
    """Run code under an environment's Python that sees the package and nothing else of ours.

    Args:
        name: The environment's.
        code: What is run.
        cwd: Where the code, the package and temporary files may lie.
        variables: More environment variables for it.

    Returns:
        What it printed.
    """
    done = subprocess.run(
        (str(python_of(name)), str(_script(code, cwd))),
        cwd=cwd / "work",
        env={**_variables(cwd), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _script(code: str, cwd: Path) -> Path:
    """The code in a file, for MindSpore compiles the source of functions; with its folders."""
    library, work = cwd / "library", cwd / "work"
    for folder in (library, work):
        folder.mkdir(parents=True, exist_ok=True)
    if not (library / "corebound").exists():
        (library / "corebound").symlink_to(ROOT / "src" / "corebound")
    script = cwd / "script.py"
    script.write_text(code)
    return script


def _variables(cwd: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(cwd / "library"), "HOME": str(cwd / "work"), "TMPDIR": str(cwd)}


# Imports a module, then forks for every folder it is told of, and says how that ended.
_FORK_SERVER = """
import importlib, os, runpy, sys, tempfile, threading, traceback
importlib.import_module(sys.argv[1])
# A lock that another thread holds would stay locked in a fork.
if threading.active_count() > 1:
    sys.exit(f"importing {sys.argv[1]} leaves {threading.enumerate()}")
for folder in map(str.rstrip, sys.stdin):
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    for descriptor, name in ((1, "said"), (2, "log")):
        os.dup2(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    os.environ.update(HOME=f"{folder}/work", TMPDIR=folder)
    tempfile.tempdir = None
    os.chdir(f"{folder}/work")
    code = 1
    try:
        runpy.run_path(f"{folder}/script.py", run_name="__main__")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
"""


class PreloadedFrameworks:
    """Frameworks, each imported once, in a process that forks for every piece of code.

    Importing one takes seconds, most of what a short piece would need; a fork from just
    after that sees nothing of what another piece has changed.
    """

    def __init__(self, folder: Path) -> None:
        """Import nothing yet; `folder` is an empty one."""
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def output_of(self, framework: str, code: str, cwd: Path) -> str:
        """Run code as `in_environment` does, in a framework's environment; what it printed."""
        process = self._processes.get(framework) or self._started(framework)
        _script(code, cwd)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{cwd}\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        log = cwd / "log" if answer else self._folder / framework / "log"
        assert answer == "0\n", log.read_text()
        return (cwd / "said").read_text()

    def home_of(self, framework: str) -> Path:
        """The home folder of the process that imported a framework."""
        return self._folder / framework / "work"

    def json_from(self, framework: str, code: str, cwd: Path) -> Any:
        """As the function `json_from`."""
        return _last_json(self.output_of(framework, _prepared(framework, code), cwd), cwd)

    def close(self) -> None:
        """End its processes; a framework would take seconds to leave by itself."""
        for process in self._processes.values():
            process.kill()
            process.communicate()

    def _started(self, framework: str) -> subprocess.Popen[str]:
        folder = self._folder / framework
        folder.mkdir()
        module = f"corebound.worker.adapters.{_module(framework)}"
        with (folder / "log").open("wb") as log:
            self._processes[framework] = subprocess.Popen(
                (str(python_of(framework)), str(_script(_FORK_SERVER, folder)), module),
                cwd=folder / "work",
                env=_variables(folder),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        return self._processes[framework]


def json_from(framework: str, code: str, cwd: Path, **variables: str) -> Any:
    """Run code after the adapter was prepared as a worker does it; what it prints last is JSON.

    It is to leave nothing in the folder it is started in, which is its home too.
    """
    prepared = _prepared(framework, code)
    return _last_json(in_environment(framework, prepared, cwd=cwd, **variables), cwd)


def _prepared(framework: str, code: str) -> str:
    return (
        "import json\n"
        f"from corebound.worker.adapters import {_module(framework)} as adapter\n"
        "adapter.prepare(seed=1, intra_op=None, inter_op=None)\n" + code
    )


def _module(framework: str) -> str:
    return framework.replace("-", "_")


def _last_json(printed: str, cwd: Path) -> Any:
    assert list((cwd / "work").iterdir()) == []
    return json.loads(printed.splitlines()[-1])


def plan_cell(environment: str, *, folder: str = "", **scenario: Any) -> PlannedCell:
    """The only cell of a scenario, on this host; `folder` holds modules of its own."""
    python = python_of(environment)
    document = {
        "schema": 1,
        "name": "one",
        "title": "One",
        "question": "Does it run?",
        "environment": environment,
        **scenario,
    }
    loaded = load_document(document, "one.yaml")
    capabilities = HostCapabilities(
        topology=discovery.live_topology(),
        tools=frozenset({"taskset", "numactl", "java", "g++"}),
        pythons={environment: str(python)},
    )
    (one,) = plan_cells(
        loaded, expand(loaded, "one"), capabilities, folder=folder, profile=None, seed=1
    )
    return one


def launch_once(
    folder: Path, environment: str, *, kind: Kind = "measure", **scenario: Any
) -> LaunchResult:
    """Launch a scenario's only cell once, as a run does.

    A run would start the command line and launch at least twice.
    """
    measure = {"iterations": 3, **scenario.pop("measure", {})}
    cell = plan_cell(environment, folder=str(folder), measure=measure, **scenario)
    # As a run's: the sockets below it have room for a short name only.
    scratch = Path(tempfile.mkdtemp(prefix="corebound-"))
    with ExitStack() as stack:
        launch = launcher(stack, scratch, folder / "traces", lambda: None, gpus=0)
        (outcome,) = launch([Job(name="one", kind=kind, block=0, position=0, planned=cell)])
        return outcome


def run_scenario(suite: Path, *, code: int = 0, **scenario: Any) -> tuple[Launch, ...]:
    """Run one scenario through the command line; see how it ends, leaving only its records."""
    document = {
        "schema": 1,
        "name": "one",
        "title": "One",
        "question": "Does it run?",
        **scenario,
        # Whatever else uses this host is not what is asked, nor whether a pause is quiet.
        "measure": {
            "iterations": 3,
            "launches": {"min": 2, "max": 2},
            "relaunch_disturbed": 0,
            "alternate": "never",
        },
    }
    (suite / "one.yaml").write_text(json.dumps(document))  # JSON is YAML too
    before = set(suite.iterdir())
    completed = corebound(suite, "run", "one.yaml", "--json", "--unlocked")
    assert completed.code == code, completed
    assert set(suite.iterdir()) - before == {suite / "reports"}
    (file,) = jsonl.files(suite / "reports" / "records")
    return jsonl.read(file).launches
