"""The cost of a site of a real history: `corebound import asv` and `report`, and `asv publish`.

    python -m benchmarks.publish [PROJECT | --wide | --deep [N]] [--rounds N] [--times N]

`python -m benchmarks.harness` prints the same table for one round.

PROJECT is the folder of an asv.conf.json, or an archive of one; default: a history of sunpy, if it
is present beside the checkout.

asv shows only results of commits of the project's repository, which is not available. Both tools
therefore get a copy: a repository with the same number of commits, with the dates of the results,
and the results with the hashes of these commits, otherwise unchanged. asv reads the order of
commits from the repository, corebound their subjects. The tools run in alternating order, each
time from nothing.

`--times` copies every benchmark under other names, with slightly different values, so that no work
is shared. This is not a real history, and the table says so; it shows how costs grow with the
number of series. sunpy has ten benchmarks, for which asv needs a few seconds. `--wide` generates a
history of few files and thousands of cells, as large projects have; `--deep` one of N benchmarks
with about 18 cells each on one machine, measured at 350 commits.

CPU time includes all children of a command; memory is that of its largest process.
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
MORE = "one more point"
NOTHING = "nothing new"
# Standard deviation of the logarithm between copies.
OFF = 0.002
_LISTED = 3
# Runs a command, and prints its exit code, CPU seconds, seconds and peak memory in KiB.
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
    """The total cost of commands; memory is that of the largest process."""

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
    """Run a command and measure its cost."""
    log = folder / "log.txt"
    # A new process inherits the peak memory of its parent, so a small process starts it.
    starter = (sys.executable, "-I", "-S", "-c", _STARTER, str(log), *words)
    completed = subprocess.run(starter, cwd=folder, check=True, capture_output=True, text=True)
    code, cpu_s, wall_s, peak_kib = json.loads(completed.stdout)
    if code:
        raise SystemExit(f"{' '.join(words)} failed:\n{log.read_text(errors='replace')[-2000:]}")
    return Cost(cpu_s=cpu_s, wall_s=wall_s, peak_bytes=peak_kib * 1024)


def copy_of(project: Path, into: Path, times: int = 1) -> list[Path]:
    """Copy a project, with results of commits of a new repository; returns its result files."""
    shutil.copytree(project / "results", into / "results")
    files = [file for file in (into / "results").rglob("*.json") if file.name not in _ABOUT]
    contents = {file: json.loads(file.read_bytes()) for file in files}
    files.sort(key=lambda file: (contents[file]["date"], contents[file]["commit_hash"]))
    dates_ms = {contents[file]["commit_hash"]: contents[file]["date"] for file in files}
    rng = np.random.default_rng(1)
    hashes = dict(zip(dates_ms, commits(into / "repo", dates_ms.values()), strict=True))
    renamed = []
    for file in files:
        sha = hashes[contents[file]["commit_hash"]]
        rest = file.name.partition("-")[2]
        contents[file]["commit_hash"] = sha
        contents[file]["results"] = varied(contents[file]["results"], times, rng)
        file.unlink()
        renamed.append(file.with_name(f"{sha[:8]}-{rest}"))
        renamed[-1].write_text(json.dumps(contents[file]), encoding="utf-8")
    about = into / "results" / "benchmarks.json"
    known = json.loads(about.read_bytes())
    version = known.pop("version")
    entries = {name: {**entry, "name": name} for name, entry in repeated(known, times).items()}
    about.write_text(json.dumps({**entries, "version": version}), encoding="utf-8")
    configuration = {
        "version": 1, "project": project.name, "repo": "repo", "branches": ["main"],
        "environment_type": "virtualenv", "results_dir": "results", "html_dir": "html",
        "show_commit_url": "https://example.org/",
    }  # fmt: skip
    (into / "asv.conf.json").write_text(json.dumps(configuration), encoding="utf-8")
    return renamed


def repeated(by_name: dict[str, Any], times: int) -> dict[str, Any]:
    """Repeat entries this many times; the first copy keeps its name."""
    return {
        f"{name}_{number}" if number else name: value
        for number in range(times)
        for name, value in by_name.items()
    }


def varied(results: dict[str, Any], times: int, rng: np.random.Generator) -> dict[str, Any]:
    """Repeat results; the values of each copy differ slightly, so that no work is shared."""
    copies = repeated(results, times)
    for name in [name for name in copies if name not in results]:
        row = list(copies[name])
        values = [
            value * rng.lognormal(0, OFF) if isinstance(value, float | int) else value
            for value in row[0] or ()
        ]
        copies[name] = [values if row[0] else row[0], *row[1:]]
    return copies


def commits(repo: Path, dates_ms: Iterable[int]) -> list[str]:
    """Create a repository of empty commits with these dates; returns their hashes."""
    subprocess.run(("git", "init", "--quiet", "--initial-branch", "main", repo), check=True)
    lines = []
    for number, date_ms in enumerate(dates_ms, start=1):
        message = f"Change number {number}".encode()
        lines.append(
            b"commit refs/heads/main\nmark :%d\ncommitter A <a@example.org> %d +0000\ndata %d\n%s\n"
            % (number, date_ms // 1000, len(message), message)
        )
    git = ("git", "-C", repo)
    subprocess.run((*git, "fast-import", "--quiet"), input=b"".join(lines), check=True)
    hashes = subprocess.run(
        (*git, "rev-list", "--reverse", "main"), check=True, capture_output=True, text=True
    )
    return hashes.stdout.split()


def corebound(folder: Path, label: str = "corebound") -> dict[str, Cost]:
    """Import and report, on top of what the folder contains; returns the total and each cost."""
    command = (sys.executable, "-m", "corebound")
    records = ("--records", "records")
    imported = cost(*command, "import", "asv", ".", *records, "--json", folder=folder)
    reported = cost(*command, "report", *records, "--out", "site", folder=folder)
    return {
        label: imported + reported,
        "  of that, import": imported,
        "  of that, report": reported,
    }


def asv(folder: Path) -> dict[str, Cost]:
    """Run `asv publish`, which always starts from nothing."""
    return {"asv": cost(sys.executable, "-m", "asv", "publish", "--no-pull", folder=folder)}


def check(folder: Path) -> None:
    """Check that both sites show the history.

    Raises:
        SystemExit: One of them does not.
    """
    about = json.loads((folder / "results" / "benchmarks.json").read_bytes())
    wanted = {name for name, entry in about.items() if isinstance(entry, dict)}
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
    """The first names, and the number of the others."""
    first = sorted(names)[:_LISTED]
    return f"{', '.join(first)} {and_more(len(names) - len(first))}".rstrip()


def one_round(project: Path, *, first: str, times: int) -> tuple[dict[str, Cost], dict[str, int]]:
    """Run both tools, then corebound with one more point and none; returns costs and bytes."""
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
        costs[NOTHING] = corebound(folder, NOTHING)[NOTHING]
        return costs, {"corebound": size(folder / "site"), "asv": size(folder / "html")}


def size(folder: Path) -> int:
    """The total size of all files in a folder, in bytes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def table(rounds: Sequence[dict[str, Cost]], sizes: dict[str, int]) -> None:
    """Print medians over the rounds, and ratios with their targets."""
    medians = {
        tool: Cost(
            cpu_s=statistics.median(costs[tool].cpu_s for costs in rounds),
            wall_s=statistics.median(costs[tool].wall_s for costs in rounds),
            peak_bytes=round(statistics.median(costs[tool].peak_bytes for costs in rounds)),
        )
        for tool in rounds[0]
    }
    print(f"{'':18}{'CPU':>10}{'time':>10}{'memory':>12}{'site':>12}")
    for tool, median in medians.items():
        site = f"{sizes[tool] / 2**20:>8.1f} MiB" if tool in sizes else ""
        print(
            f"{tool:18}{median.cpu_s:>8.2f} s{median.wall_s:>8.2f} s"
            f"{median.peak_bytes / 2**20:>8.0f} MiB{site}"
        )
    ours, peer = medians["corebound"], medians["asv"]
    print(f"CPU time of asv / corebound: {peer.cpu_s / ours.cpu_s:.1f} (target: 20)")
    print(f"memory of corebound / asv: {ours.peak_bytes / peer.peak_bytes:.2f} (target: 0.25)")
    more = medians[MORE]
    print(f"{MORE}: {more.wall_s:.2f} s, {more.cpu_s:.2f} s of CPU (target: under 2 s)")
    print(f"site of corebound / asv: {sizes['corebound'] / sizes['asv']:.2f} (target: 1)")


def missing(project: Path = SUNPY) -> str | None:
    """Why there is no project to compare; None if there is one."""
    if project.exists():
        return None
    return f"{project} does not exist: name the folder of an asv.conf.json."


def measure(
    project: Path, *, rounds: int, times: int = 1
) -> tuple[list[dict[str, Cost]], dict[str, int]]:
    """Run both tools several times; returns the costs of each round, and the sizes of the sites.

    Args:
        project: The folder of an asv.conf.json, or an archive of one.
        rounds: The number of rounds.
        times: The number of copies of each benchmark.
    """
    # An installer does this too; asv's modules are compiled already.
    compileall.compile_dir(str(Path(cli.__file__).parents[1]), quiet=2)
    rounds_costs: list[dict[str, Cost]] = []
    sizes: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as name:
        if project.is_file():
            with tarfile.open(project) as packed:
                packed.extractall(name, filter="data")
            (project,) = Path(name).iterdir()
        for number in range(rounds):
            costs, sizes = one_round(project, first=("corebound", "asv")[number % 2], times=times)
            rounds_costs.append(costs)
    return rounds_costs, sizes


def main() -> None:
    """Compare, and print the table."""
    parser = argparse.ArgumentParser(
        description="Compare the costs of corebound's site with those of `asv publish`."
    )
    parser.add_argument("project", nargs="?", type=Path, default=SUNPY, help="an asv project")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="number of rounds")
    parser.add_argument("--times", type=int, default=1, help="copies of each benchmark")
    parser.add_argument(
        "--wide", action="store_true", help="generate few files with thousands of cells"
    )
    parser.add_argument(
        "--deep", type=int, nargs="?", const=wide.DEEP_BENCHMARKS, metavar="N",
        help="generate N benchmarks of about 18 cells, measured at 350 commits",
    )  # fmt: skip
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        project = options.project
        if options.wide or options.deep:
            project = Path(name)
        if options.wide:
            wide.make(project)
        elif options.deep:
            wide.make_deep(project, benchmarks=options.deep)
        if (reason := missing(project)) is not None:
            raise SystemExit(reason)
        measured = measure(project, rounds=options.rounds, times=options.times)
    if options.wide or options.deep:
        print("Not a real history: generated by benchmarks.wide.")
    if options.times > 1:
        print(f"Not a real history: {options.times} copies of each benchmark.")
    table(*measured)


if __name__ == "__main__":
    main()
