"""The commands of the documentation work as printed, on a repository with recorded results."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from corebound.records import history_files
from corebound.records.run_record import Commit
from support.build import a_series, write_records
from support.commands import corebound
from support.paths import DATA, ROOT
from support.report_sample import sample_records
from support.repositories import git

RESULTS = DATA / "results"
# Where the pages expect files of other tools.
FILES = {
    "results.json": "bencher.json",
    "times.json": "hyperfine.json",
    "out.json": "google-benchmark.json",
    "result.json": "hyperfine.json",
    "trace.json.gz": "../profiles/torch.pt.trace.json.gz",
    "dev/bench/data.js": "data.js",
    ".benchmarks/host/0001.json": "pytest-benchmark.json",
    "nights.csv": "nights.csv",
    "runs.json": "runs.json",
}
# A page, and the first words of its block of commands.
BLOCKS = [
    ("how-to/exchange.md", "corebound export asv"),
    ("how-to/across-hosts.md", "corebound compare --by"),
    ("how-to/publishing.md", "corebound report --out"),
    ("how-to/nightly.md", "corebound regressions --json"),
    ("how-to/nightly.md", "corebound publish"),
    ("how-to/doctor.md", "corebound doctor"),
    ("how-to/containers.md", "corebound topology"),
    ("how-to/migrating.md", "import pytest-benchmark .benchmarks"),
    ("how-to/migrating.md", "corebound import hyperfine"),
    ("how-to/slurm.md", "corebound plan"),
    ("how-to/slurm.md", "corebound compare --by host"),
    ("how-to/importing-profiles.md", "corebound import profile"),
    ("reference/report.md", "corebound compare"),
]
# What needs a program or privileges that are tested elsewhere.
SKIPPED = re.compile(r"import (asv|pyperf)|--tune|--restore|openmetrics")
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# 30 points, then 20 that are half as slow again.
SLOWER = [100.0 + number % 3 for number in range(30)] + [150.0 + number % 3 for number in range(20)]


def lines_of(page: str, first: str) -> Iterator[str]:
    """The command lines of the block that has a line with these words."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    (block,) = [body for kind, body in _FENCE.findall(text) if kind == "sh" and first in body]
    yield from (line for line in block.splitlines() if line.startswith("corebound "))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with a commit, recorded runs, a history with a regression, and foreign files."""
    folder = tmp_path_factory.mktemp("documented")
    origin, clone = folder / "origin.git", folder / "clone"
    subprocess.run(("git", "init", "--quiet", "--bare", str(origin)), check=True)
    clone.mkdir()
    for arguments in (
        ("init", "--quiet", "--initial-branch", "main"),
        ("remote", "add", "origin", str(origin)),
        ("commit", "--quiet", "--allow-empty", "--message", "Begin"),
    ):
        git(clone, *arguments)
    for name, source in FILES.items():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(RESULTS / source, clone / name)
    shutil.copytree(RESULTS / "criterion", clone / "target" / "criterion")
    records = clone / "reports" / "records"
    shutil.copytree(DATA / "profiles/msprof", clone / "PROF_000001/mindstudio_profiler_output")
    # The ids and tags that the pages compare.
    named = zip(
        sample_records(), ("1f0c2d3e", "9be1a7c4", "serving"), ("v1.2", "v1.3", None), strict=True
    )
    for (run, launches), name, tag in named:
        own = replace(run, id=name, commit=tagged(clone, tag) if tag else run.commit)
        write_records(records, own, *(replace(launch, run=name) for launch in launches))
        other = replace(run.host, id="fedcba", name="other")
        write_records(records, replace(run, id=f"other-{name}", host=other), *launches)
    history_files.keep("parsing", (a_series(SLOWER, project="parsing"),), records)
    (scenario,) = sample_records()[0][0].scenarios
    (clone / "scenarios").mkdir()
    # The page's scenario is the sample's.
    (clone / "scenarios" / "matmul.yaml").write_text(yaml.safe_dump(scenario.document))
    return clone


def tagged(clone: Path, tag: str) -> Commit:
    """A new commit with a tag, as records have it."""
    git(clone, "commit", "--quiet", "--allow-empty", "--message", tag)
    git(clone, "tag", tag)
    sha = git(clone, "rev-parse", "HEAD").strip()
    return Commit(sha=sha, subject=tag, committed_at="2026-03-01T00:00:00+00:00", dirty=False)


@pytest.mark.parametrize(("page", "first"), BLOCKS)
def test_its_commands_work(page: str, first: str, repository: Path, tmp_path: Path) -> None:
    for line in lines_of(page, first):
        if SKIPPED.search(line):
            continue
        command = line.replace("/var/www", str(tmp_path)).replace(" --open", "")
        words = [
            found
            for word in shlex.split(command, comments=True)[1:]
            for found in (map(str, sorted(repository.glob(word))) if "*" in word else [word])
        ]

        completed = corebound(repository, *words, in_process=True)

        # A new regression exits with 1.
        assert completed.code in ({0, 1} if "regressions" in line else {0}), (line, completed)
        assert completed.out.strip() or completed.err.strip(), line


@pytest.mark.measures
def test_the_readmes_own_code_is_measured_as_printed(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    section = text[text.index("## Your own code") : text.index("## Everything else")]
    for kind, body in _FENCE.findall(section):
        if kind in {"yaml", "python"}:
            (tmp_path / body.split()[1]).write_text(body)
    commands = [body for kind, body in _FENCE.findall(section) if kind == "sh"]
    lines = [line for body in commands for line in body.splitlines() if line.startswith("coreb")]
    for line in lines:
        words = shlex.split(line.replace("--open", ""), comments=True)[1:]
        quick = ("--profile", "quick") if words[0] == "run" else ()

        completed = corebound(tmp_path, *words, *quick)

        assert completed.code == 0, completed
    assert "SHA-256" in (tmp_path / "reports" / "site" / "index.html").read_text("utf-8")
