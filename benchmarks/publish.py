"""What a site of a real history costs: `corebound import asv` and `report`, `asv publish`.

    python -m benchmarks.publish [PROJECT | --wide] [--rounds N] [--times N]

`python -m benchmarks.harness` shows the table too, of one round.

PROJECT is the folder of an asv.conf.json, or a packed one; without it, the history of
sunpy that lies beside some checkouts.

asv draws only what belongs to commits of the project's repository, which is not here, and
hashes cannot be chosen. So both get the same copy: a repository is made of as many commits,
with the dates of the results, and the results are given those commits' hashes. Nothing else
of them changes. Both read the repository: asv for the order of commits, corebound for their
subjects. They take turns, and each time both begin from nothing.

With `--times` every benchmark is there so many times, under other names and each figure a
little off, so that no answer is of use to two of them. That is no real history, and the table
says so: it only shows how the costs grow with the number of series. sunpy has ten benchmarks,
with which asv itself is done in a few seconds. `--wide` makes a history of few files and
thousands of cells, as large projects have.

CPU time is that of a command and all its children, memory that of its largest process.
"""

from __future__ import annotations

import argparse
import compileall
import json
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from benchmarks import wide
from corebound import cli
from corebound.analysis.wording import and_more

SUNPY = Path(__file__).parents[2] / "shared" / "data" / "histories" / "sunpy-benchmarks.tar.xz"
ROUNDS = 3
MORE = "one night more"
# Standard deviation of what copies are off by, as a logarithm.
OFF = 0.002
_LISTED = 3
# Runs a command to its end, and says its exit code, CPU seconds, seconds and peak in KiB.
_STARTER = """\
import os, sys, time
log, *words = sys.argv[1:]
began_s = time.monotonic()
pid = os.fork()
if not pid:
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.execv(words[0], words)
_, status, used = os.wait4(pid, 0)
print([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime,
       time.monotonic() - began_s, used.ru_maxrss])
"""
_ABOUT = ("machine.json", "benchmarks.json")


class Cost(Struct, frozen=True, kw_only=True):
    """What commands took together; memory is that of the largest process."""

    cpu_s: float
    wall_s: float
    peak_bytes: int

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            cpu_s=self.cpu_s + other.cpu_s,
            wall_s=self.wall_s + other.wall_s,
            peak_bytes=max(self.peak_bytes, other.peak_bytes),
        )


def cost(*words: str, folder: Path) -> Cost:
    """Run a command to its end and say what it took."""
    log = folder / "log.txt"
    # What starts a process is as large as itself in its peak; so something small starts it.
    starter = (sys.executable, "-I", "-S", "-c", _STARTER, str(log), *words)
    done = subprocess.run(starter, cwd=folder, check=True, capture_output=True, text=True)
    code, cpu_s, wall_s, peak_kib = json.loads(done.stdout)
    if code:
        raise SystemExit(f"{' '.join(words)} failed:\n{log.read_text(errors='replace')[-2000:]}")
    return Cost(cpu_s=cpu_s, wall_s=wall_s, peak_bytes=peak_kib * 1024)


def copy_of(project: Path, into: Path, times: int = 1) -> list[Path]:
    """A project whose results are of commits of a repository beside it; its result files."""
    shutil.copytree(project / "results", into / "results")
    files = [file for file in (into / "results").rglob("*.json") if file.name not in _ABOUT]
    told = {file: json.loads(file.read_bytes()) for file in files}
    files.sort(key=lambda file: (told[file]["date"], told[file]["commit_hash"]))
    dates_ms = {told[file]["commit_hash"]: told[file]["date"] for file in files}
    rng = np.random.default_rng(1)
    hashes = dict(zip(dates_ms, commits(into / "repo", dates_ms.values()), strict=True))
    renamed = []
    for file in files:
        sha = hashes[told[file]["commit_hash"]]
        rest = file.name.partition("-")[2]
        told[file]["commit_hash"] = sha
        told[file]["results"] = varied(told[file]["results"], times, rng)
        file.unlink()
        renamed.append(file.with_name(f"{sha[:8]}-{rest}"))
        renamed[-1].write_text(json.dumps(told[file]), encoding="utf-8")
    about = into / "results" / "benchmarks.json"
    known = json.loads(about.read_bytes())
    version = known.pop("version")
    entries = {name: {**one, "name": name} for name, one in repeated(known, times).items()}
    about.write_text(json.dumps({**entries, "version": version}), encoding="utf-8")
    configuration = {
        "version": 1, "project": project.name, "repo": "repo", "branches": ["main"],
        "environment_type": "virtualenv", "results_dir": "results", "html_dir": "html",
        "show_commit_url": "https://example.org/",
    }  # fmt: skip
    (into / "asv.conf.json").write_text(json.dumps(configuration), encoding="utf-8")
    return renamed


def repeated(by_name: dict[str, Any], times: int) -> dict[str, Any]:
    """What is known by name, so many times; the first time by its own name."""
    return {
        f"{name}_{number}" if number else name: value
        for number in range(times)
        for name, value in by_name.items()
    }


def varied(results: dict[str, Any], times: int, rng: np.random.Generator) -> dict[str, Any]:
    """Results so many times; each copy's figures a little off, so that no work is shared."""
    made = repeated(results, times)
    for name in [name for name in made if name not in results]:
        row = list(made[name])
        figures = [
            figure * rng.lognormal(0, OFF) if isinstance(figure, float | int) else figure
            for figure in row[0] or ()
        ]
        made[name] = [figures if row[0] else row[0], *row[1:]]
    return made


def commits(repo: Path, dates_ms: Iterable[int]) -> list[str]:
    """A repository of empty commits, one after another; their hashes."""
    subprocess.run(("git", "init", "--quiet", "--initial-branch", "main", repo), check=True)
    told = []
    for number, date_ms in enumerate(dates_ms, start=1):
        message = f"Change number {number}".encode()
        told.append(
            b"commit refs/heads/main\nmark :%d\ncommitter A <a@example.org> %d +0000\ndata %d\n%s\n"
            % (number, date_ms // 1000, len(message), message)
        )
    git = ("git", "-C", repo)
    subprocess.run((*git, "fast-import", "--quiet"), input=b"".join(told), check=True)
    listed = subprocess.run(
        (*git, "rev-list", "--reverse", "main"), check=True, capture_output=True, text=True
    )
    return listed.stdout.split()


def corebound(folder: Path, label: str = "corebound") -> dict[str, Cost]:
    """Import and report, on top of what is in the folder already; both, and each."""
    command = (sys.executable, "-m", "corebound")
    kept = ("--records", "records")
    read = cost(*command, "import", "asv", ".", *kept, "--json", folder=folder)
    drawn = cost(*command, "report", *kept, "--out", "site", folder=folder)
    return {label: read + drawn, "  of that, import": read, "  of that, report": drawn}


def asv(folder: Path) -> dict[str, Cost]:
    """Publish, which always begins from nothing."""
    return {"asv": cost(sys.executable, "-m", "asv", "publish", "--no-pull", folder=folder)}


def check(folder: Path) -> None:
    """Refuse to compare sites of which one does not show the history."""
    about = json.loads((folder / "results" / "benchmarks.json").read_bytes())
    wanted = {name for name, one in about.items() if isinstance(one, dict)}
    drawn = {file.stem for file in (folder / "html" / "graphs").rglob("*.json")}
    if wanted - drawn:
        raise SystemExit(f"asv's site has no graph of {listed(wanted - drawn)}.")
    pages = [file.read_text(encoding="utf-8") for file in (folder / "site").rglob("*.html")]
    shown = {name for name in wanted if any(name in page for page in pages)}
    if not shown:
        raise SystemExit("corebound's site shows none of the benchmarks: nothing to compare.")
    if wanted - shown:
        print(f"not on any page of corebound's site: {listed(wanted - shown)}")


def listed(names: Collection[str]) -> str:
    """The first of them, and how many there are beyond."""
    first = sorted(names)[:_LISTED]
    return f"{', '.join(first)} {and_more(len(names) - len(first))}".rstrip()


def one_round(project: Path, *, first: str, times: int) -> tuple[dict[str, Cost], dict[str, int]]:
    """Both once, in this order, then one night more by corebound; costs and bytes written."""
    costs: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = copy_of(project, folder, times)
        latest = files[-1].read_bytes()
        files[-1].unlink()
        tools = {"corebound": corebound, "asv": asv}
        for tool in (first, *(other for other in tools if other != first)):
            costs |= tools[tool](folder)
        check(folder)
        files[-1].write_bytes(latest)
        again = corebound(folder, MORE)
        costs[MORE] = again[MORE]
        return costs, {"corebound": size(folder / "site"), "asv": size(folder / "html")}


def size(folder: Path) -> int:
    """Bytes of all files below."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def table(rounds: Sequence[dict[str, Cost]], sizes: dict[str, int]) -> None:
    """Medians over the rounds, and the ratios that count."""
    middle = {
        tool: Cost(
            cpu_s=statistics.median(one[tool].cpu_s for one in rounds),
            wall_s=statistics.median(one[tool].wall_s for one in rounds),
            peak_bytes=round(statistics.median(one[tool].peak_bytes for one in rounds)),
        )
        for tool in rounds[0]
    }
    print(f"{'':18}{'CPU':>10}{'clock':>10}{'memory':>12}{'site':>12}")
    for tool, one in middle.items():
        site = f"{sizes[tool] / 2**20:>8.1f} MiB" if tool in sizes else ""
        print(
            f"{tool:18}{one.cpu_s:>8.2f} s{one.wall_s:>8.2f} s"
            f"{one.peak_bytes / 2**20:>8.0f} MiB{site}"
        )
    ours, peer = middle["corebound"], middle["asv"]
    print(f"CPU: asv takes {peer.cpu_s / ours.cpu_s:.1f} times as much (wanted: 20)")
    print(f"memory: corebound takes {ours.peak_bytes / peer.peak_bytes:.2f} of it (wanted: 0.25)")
    more = middle[MORE]
    print(f"one night more: {more.wall_s:.2f} s, {more.cpu_s:.2f} s of CPU (wanted: under 2)")


def missing(project: Path = SUNPY) -> str | None:
    """Why there is nothing to compare with; None where there is."""
    if project.exists():
        return None
    return f"{project} is not there: name the folder of an asv.conf.json."


def measure(
    project: Path, *, rounds: int, times: int = 1
) -> tuple[list[dict[str, Cost]], dict[str, int]]:
    """Both so often, and the bytes of their sites.

    Args:
        project: The folder of an asv.conf.json, or a packed one.
        rounds: How often.
        times: How often each benchmark is there.
    """
    # As an installer does: asv's own modules are compiled already.
    compileall.compile_dir(str(Path(cli.__file__).parents[1]), quiet=2)
    found: list[dict[str, Cost]] = []
    sizes: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as name:
        if project.is_file():
            with tarfile.open(project) as packed:
                packed.extractall(name, filter="data")
            (project,) = Path(name).iterdir()
        for number in range(rounds):
            costs, sizes = one_round(project, first=("corebound", "asv")[number % 2], times=times)
            found.append(costs)
    return found, sizes


def main() -> None:
    """Compare, and print the table."""
    parser = argparse.ArgumentParser(description="corebound's site beside that of asv publish")
    parser.add_argument("project", nargs="?", type=Path, default=SUNPY)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--times", type=int, default=1, help="each benchmark so often, copied")
    parser.add_argument("--wide", action="store_true", help="few files, thousands of cells")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        project = told.project
        if told.wide:
            project = Path(name)
            wide.make(project)
        if (why := missing(project)) is not None:
            raise SystemExit(why)
        measured = measure(project, rounds=told.rounds, times=told.times)
    if told.wide:
        print("No real history: benchmarks.wide made it up.")
    if told.times > 1:
        print(f"No real history: each benchmark is there {told.times} times.")
    table(*measured)


if __name__ == "__main__":
    main()
