"""What all tools measure: one small piece of work, and the same with a little more of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from msgspec import Struct

# Turns of the inner loop of one step: a few milliseconds.
TURNS = 40_000
# Steps of one process where a tool times whole processes or launches: work, not start-up.
STEPS = 25

WORK = '''\
"""One step of the work that is compared."""


def step(turns):
    value = 0
    for number in range(turns):
        value += number & 7
    return value
'''
MAIN = """\
import sys

from work import step

for _ in range(int(sys.argv[2])):
    step(int(sys.argv[1]))
"""
COREBOUND = """\
import json
import pathlib

from work import step

SIDES = json.loads((pathlib.Path(__file__).parent / "sides.json").read_text())


def setup(*, side):
    turns = SIDES[side]
    return lambda: step(turns)
"""
PYPERF = """\
import os

import pyperf
from work import step

runner = pyperf.Runner(program_args=(__file__,))
runner.argparser.add_argument("--turns", type=int)
runner._add_cmdline_args = lambda cmd, args: cmd.extend(("--turns", str(args.turns)))
runner.parse_args()
runner.bench_func("work", step, runner.args.turns)
"""
ASV = """\
import json
import pathlib
import sys

folder = pathlib.Path(__file__).parent
sys.path.insert(0, str(folder.parent))
from work import step

chosen = json.loads((folder / "chosen.json").read_text())


class Work:
    repeat = (1, 1_000_000, chosen["seconds"])

    def setup(self):
        self.turns = chosen["turns"]

    def time_work(self):
        step(self.turns)
"""


class Pair(Struct, frozen=True, kw_only=True):
    """What is compared: two amounts of work, and a folder to do it in.

    `seconds` is what one tool may take for both, start-up and all.
    """

    folder: Path
    before: int
    after: int
    seconds: float


def pair(folder: Path, *, slower: float, seconds: float) -> Pair:
    """Write all that the tools need into an empty folder.

    Args:
        folder: An empty one.
        slower: By what share the second one's work is more; 0 is an A/A pair.
        seconds: What each tool may take.
    """
    (folder / "bench").mkdir(parents=True)
    for name, text in (
        ("work.py", WORK),
        ("main.py", MAIN),
        ("steps.py", COREBOUND),
        ("timed.py", PYPERF),
        ("bench/__init__.py", ""),
        ("bench/work_asv.py", ASV),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    after = round(TURNS * (1 + slower))
    sides = json.dumps({"before": TURNS, "after": after})
    (folder / "sides.json").write_text(sides, encoding="utf-8")
    return Pair(folder=folder, before=TURNS, after=after, seconds=seconds)


def repository(folder: Path) -> tuple[str, str]:
    """Make the folder a repository of two commits, as asv wants one; their hashes."""
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
    person = ("-c", "user.name=Peers", "-c", "user.email=peers@example.org")
    done = subprocess.run(
        ("git", "-C", str(folder), *person, *words), check=True, capture_output=True, text=True
    )
    return done.stdout
