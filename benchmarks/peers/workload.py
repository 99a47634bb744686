"""The files that the tools need to measure a pair of steps."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from msgspec import Struct

from benchmarks.peers.runtime import Runtime, link_corebound

# Steps per process, for tools that time whole processes, so that start-up matters little.
STEPS_PER_PROCESS = 25

WORK = '''\
"""The step that is compared, and the same with extra work."""

from step import {function} as plain
from step import extra_work


def prepare(size):
    """The plain step if size is 0; otherwise the same step followed by extra work."""
    step = plain()
    if not size:
        return step
    additional = extra_work(size)

    def slower():
        step()
        additional()

    return slower
'''
MAIN = """\
import sys

from work import prepare

step = prepare(int(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    step()
"""
COREBOUND = """\
import json
import pathlib

from work import prepare

SIDES = json.loads((pathlib.Path(__file__).parent / "sides.json").read_text())


def setup(*, side):
    return prepare(SIDES[side])
"""
PYPERF = """\
import pyperf
from work import prepare

runner = pyperf.Runner(program_args=(__file__,))
runner.argparser.add_argument("--size", type=int)
runner._add_cmdline_args = lambda cmd, args: cmd.extend(("--size", str(args.size)))
runner.parse_args()
runner.bench_func("work", prepare(runner.args.size))
"""
ASV = """\
import json
import pathlib
import sys

folder = pathlib.Path(__file__).parent
sys.path.insert(0, str(folder.parent))
from work import prepare

settings = json.loads((folder / "settings.json").read_text())


class Work:
    repeat = (1, 1_000_000, settings["seconds"])

    def setup(self):
        self.step = prepare(settings["size"])

    def time_work(self):
        self.step()
"""
TORCH_TIMER = """\
import pickle
import sys

from torch.utils.benchmark import Timer
from work import prepare

side, size, threads, seconds, path = sys.argv[1:]
timer = Timer(
    "step()",
    globals={"step": prepare(int(size))},
    num_threads=int(threads),
    sub_label="step",
    description=side,
)
with open(path, "wb") as stream:
    pickle.dump(timer.blocked_autorange(min_run_time=float(seconds)), stream)
"""
TORCH_COMPARE = """\
import json
import pathlib
import pickle

from torch.utils.benchmark import Compare, Measurement

measurements = [pickle.loads(path.read_bytes()) for path in sorted(pathlib.Path().glob("*.pickle"))]
comparison = Compare(measurements)
comparison.trim_significant_figures()
times = {one.description: list(one.times) for one in Measurement.merge(measurements)}
print(json.dumps({"table": str(comparison), "times": times}))
"""


class Pair(Struct, frozen=True, kw_only=True):
    """Two steps to compare.

    Attributes:
        folder: The folder to work in.
        runtime: Where the steps run.
        before, after: The sizes of the extra work of the two steps; 0 is the plain step.
        seconds: How long a tool may take for both, including start-up.
        startup_s: How long a process takes to start, to set up the step and to run it once.
    """

    folder: Path
    runtime: Runtime
    before: int
    after: int
    seconds: float
    startup_s: float

    @property
    def sides(self) -> tuple[tuple[str, int], ...]:
        """The name of each side and the size of its extra work."""
        return (("before", self.before), ("after", self.after))


def write_step(folder: Path, runtime: Runtime) -> None:
    """Write the modules `work` and `step` into an empty or missing folder."""
    folder.mkdir(parents=True, exist_ok=True)
    link_corebound(folder)
    steps = Path(__file__).parent / "steps"
    shutil.copyfile(steps / f"{runtime.step.module}.py", folder / "step.py")
    shutil.copyfile(steps / "calibrate.py", folder / "calibrate.py")
    text = WORK.format(function=runtime.step.function)
    (folder / "work.py").write_text(text, encoding="utf-8")


def create_pair(
    folder: Path, runtime: Runtime, *, size: int, seconds: float, startup_s: float
) -> Pair:
    """Write the files that the tools need into a folder.

    Args:
        folder: An empty or missing folder.
        runtime: Where the steps run.
        size: The size of the extra work of the second step; 0 is an A/A pair.
        seconds: How long each tool may take.
        startup_s: How long a process takes to start, to set up the step and to run it once.
    """
    write_step(folder, runtime)
    (folder / "bench").mkdir()
    for name, text in (
        ("main.py", MAIN),
        ("steps.py", COREBOUND),
        ("timed.py", PYPERF),
        ("torch_timer.py", TORCH_TIMER),
        ("torch_compare.py", TORCH_COMPARE),
        ("bench/__init__.py", ""),
        ("bench/work_asv.py", ASV),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    pair = Pair(
        folder=folder, runtime=runtime, before=0, after=size, seconds=seconds, startup_s=startup_s
    )
    (folder / "sides.json").write_text(json.dumps(dict(pair.sides)), encoding="utf-8")
    return pair


def create_repository(folder: Path) -> tuple[str, str]:
    """Make the folder a git repository of two commits for asv; returns their hashes."""
    conf = {
        "version": 1, "project": "work", "repo": ".", "branches": ["HEAD"],
        "environment_type": "existing", "benchmark_dir": "bench", "results_dir": "results",
        "html_dir": "html", "env_dir": "env",
    }  # fmt: skip
    (folder / "asv.conf.json").write_text(json.dumps(conf), encoding="utf-8")
    _git(folder, "init", "--quiet")
    for subject in ("before", "after"):
        _git(folder, "commit", "--quiet", "--allow-empty", "--message", subject)
    before, after = _git(folder, "rev-list", "--reverse", "HEAD").split()
    return before, after


def _git(folder: Path, *words: str) -> str:
    author = ("-c", "user.name=Peers", "-c", "user.email=peers@example.org")
    completed = subprocess.run(
        ("git", "-C", str(folder), *author, *words), check=True, capture_output=True, text=True
    )
    return completed.stdout
