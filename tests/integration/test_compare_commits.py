"""compare-commits and bisect find planted changes, with real builds, launches and git."""

import json
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from asv.results import iter_results

from corebound import bisect, compare_commits
from corebound.asv_bridge.project import open_project
from corebound.records import jsonl
from corebound.records.run_record import Run
from support import repositories
from support.commands import corebound, output_of, start, until
from support.repositories import Toy, git

PLANTED, BROKEN = 19, 17
# Few to build, that which does not among them.
GOOD, BAD = 16, 21
# Tenfold naps, which few launches show even on a busy machine.
SLOWER = 9.0


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """One repository for all, whose environments are built once."""
    return repositories.make_toy(
        tmp_path_factory.mktemp("toy") / "repository",
        slower={PLANTED: SLOWER},
        broken=[BROKEN],
        least=3,
        most=5,
        width=0.2,
        iterations=12,
        naps=True,
    )


def records(toy: Toy) -> list[jsonl.Stored]:
    return [jsonl.read(file) for file in jsonl.files(toy.folder / "reports" / "records")]


def compared(toy: Toy, base: int, head: int, *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out, err = corebound(
        toy.folder, "compare-commits", toy.commits[base], toy.commits[head], "--json", *arguments
    )
    assert out, err
    document: dict[str, Any] = json.loads(out)
    return code, document


def test_a_slower_commit_is_a_regression_measured_with_interleaved_launches(toy: Toy) -> None:
    code, document = compared(toy, PLANTED - 1, PLANTED)

    (cell,) = document["cells"]
    assert code == 1
    assert (cell["scenario"], cell["cell"], cell["verdict"]) == ("toy", "default", "slower")
    # How much slower, only a quiet machine could tell.
    assert cell["slowdown_interval"][0] > 1
    repeated = output_of(
        toy.folder, "compare", toy.commits[PLANTED - 1], toy.commits[PLANTED], "--json"
    )
    assert json.loads(repeated)["cells"] == document["cells"]
    stored = jsonl.read(toy.folder / document["records"])
    by_block: dict[int, set[str | None]] = {}
    for launch in stored.launches:
        assert launch.status == "ok", launch.reason
        by_block.setdefault(launch.block, set()).add(launch.cell.commit)
    assert set(map(len, by_block.values())) == {2}
    tested = {
        environment.commit.sha for environment in stored.run.environments if environment.commit
    }
    assert tested == {toy.commits[PLANTED - 1], toy.commits[PLANTED]}


def test_the_reverse_comparison_is_an_improvement_also_for_the_python_api(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(toy.folder)

    comparison = compare_commits(toy.commits[PLANTED], toy.commits[PLANTED - 1], "scenarios")

    assert (comparison.row.name, comparison.verdict) == ("toy[default]", "faster")
    assert comparison.before == toy.commits[PLANTED][:10]
    assert set(comparison.results.launches()["commit"]) == {
        toy.commits[PLANTED], toy.commits[PLANTED - 1]
    }  # fmt: skip


def test_a_commit_that_does_not_build_is_reported_and_both_sides_are_recorded(toy: Toy) -> None:
    code, document = compared(toy, BROKEN, PLANTED)

    (cell,) = document["cells"]
    assert code == 4
    assert cell["verdict"] is None
    assert "could not be built" in cell["missing"][0]
    assert "this commit does not build" in cell["missing"][0]
    stored = jsonl.read(toy.folder / document["records"])
    statuses = {launch.cell.commit: launch.status for launch in stored.launches}
    assert statuses == {toy.commits[BROKEN][:10]: "skipped", toy.commits[PLANTED][:10]: "ok"}


def test_asv_gets_each_commit_of_a_comparison_as_its_own(toy: Toy, tmp_path: Path) -> None:
    output_of(toy.folder, "export", "asv", "--out", str(tmp_path))

    found = {
        result.commit_hash: result.get_result_value("toy.commits", [])
        for result in iter_results(str(tmp_path))
    }
    assert {toy.commits[PLANTED - 1], toy.commits[PLANTED]} <= found.keys()
    assert found[toy.commits[PLANTED]][0] > found[toy.commits[PLANTED - 1]][0]


def test_bisect_names_the_planted_commit_resumes_after_a_kill_and_launches_nothing_twice(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("bisect", toy.commits[GOOD], toy.commits[BAD], "--scenario", "scenarios/toy.yaml")
    before = {stored.file for stored in records(toy)}
    process = start(toy.folder, *arguments, "--json")

    def is_measuring() -> bool:
        assert process.poll() is None, "it ended by itself"
        new = set(jsonl.files(toy.folder / "reports" / "records")) - before
        # The run, then a line for each launch.
        return any(file.read_bytes().count(b"\n") >= 4 for file in new)

    until(is_measuring, 300)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    launches_before = {stored.file: stored.launches for stored in records(toy)}

    code, out, err = corebound(toy.folder, *arguments, "--json")

    assert code == 0, err
    document = json.loads(out)
    assert (document["outcome"], [suspect["sha"] for suspect in document["suspects"]]) == (
        "found",
        [toy.commits[PLANTED]],
    ), err
    assert document["slowdown_interval"][0] > 1
    after = {stored.file: stored.launches for stored in records(toy)}
    assert all(
        after[file][: len(launches)] == launches for file, launches in launches_before.items()
    )
    (new_record,) = launches_before.keys() - before
    new = [stored for stored in records(toy) if stored.file not in before]
    assert str(new_record.relative_to(toy.folder)) in document["records"]

    # It is finished: repeated, it needs nothing but its records.
    finished = records(toy)
    code, out, _ = corebound(toy.folder, *arguments)
    assert code == 0
    assert f"{PLANTED}: make it" in out
    assert records(toy) == finished
    monkeypatch.chdir(toy.folder)
    bisection = bisect(toy.commits[GOOD], toy.commits[BAD], "scenarios/toy.yaml")
    assert bisection.commit is not None
    assert bisection.commit.sha == toy.commits[PLANTED]
    assert msgspec.json.decode(msgspec.json.encode(bisection.document)).items() <= document.items()
    assert set(bisection.results.runs()["run"]) >= {stored.run.id for stored in new}
    # Their memory did not change, which may take more launches to see.
    _, out, _ = corebound(toy.folder, *arguments, "--metric", "memory", "--json")
    assert json.loads(out)["outcome"] in {"no difference", "inconclusive"}


def measured(toy: Toy, *arguments: str) -> Run:
    """The run that `corebound run` records."""
    code, out, err = corebound(toy.folder, "run", "scenarios/toy.yaml", "--json", *arguments)
    assert code == 0, err
    return jsonl.read_run(toy.folder / json.loads(out)["records"])


def test_a_plain_run_measures_the_working_tree_with_its_changes(toy: Toy) -> None:
    module = toy.folder / "toy" / "__init__.py"
    text = module.read_text()
    (toy.folder / "toy" / "new.py").write_text("WORK = 3\n")
    module.write_text("from toy.new import WORK\n\n\ndef total():\n    return WORK\n")
    before = git(toy.folder, "for-each-ref"), git(toy.folder, "status", "--porcelain")
    try:
        changed, again = measured(toy), measured(toy)
        committed = measured(toy, "--committed")
        code, out, err = corebound(toy.folder, "compare-commits", "HEAD", ".", "--json")
        after = git(toy.folder, "for-each-ref"), git(toy.folder, "status", "--porcelain")
    finally:
        module.write_text(text)
        (toy.folder / "toy" / "new.py").unlink()

    assert committed.commit == committed.environments[0].commit
    assert committed.commit is not None
    assert committed.commit.name == toy.commits[-1][:10]
    assert changed.commit is not None
    assert (changed.commit.sha, changed.commit.dirty) == (toy.commits[-1], True)
    assert changed.commit == changed.environments[0].commit == again.commit
    assert before == after
    # The step returns at once, so that no machine is too busy to tell.
    assert code == 0, err
    document = json.loads(out)
    assert [cell["verdict"] for cell in document["cells"]] == ["faster"]
    assert document["head"]["tree"] == changed.commit.tree
    # From the snapshot, for the changes are undone: the commit takes thousands of times as long.
    code, out, err = corebound(toy.folder, "reproduce", changed.id, "--anyway", "--json")
    assert code in {0, 1}, err
    again_ns = json.loads(out)["now_ns"]
    assert again_ns < 100 * json.loads(out)["then_ns"]


def test_a_plain_run_measures_the_commit_that_is_checked_out(toy: Toy) -> None:
    git(toy.folder, "checkout", "--quiet", toy.commits[GOOD])
    try:
        code, out, err = corebound(toy.folder, "run", "scenarios/toy.yaml", "--json")
    finally:
        git(toy.folder, "checkout", "--quiet", "main")

    assert code == 0, err
    stored = jsonl.read(toy.folder / json.loads(out)["records"])
    (lock,) = stored.run.environments
    assert lock.commit is not None
    assert stored.run.commit == lock.commit
    assert not lock.commit.dirty
    assert (lock.name, lock.commit.sha) == ("project", toy.commits[GOOD])
    # The project itself is what is measured, not one of the circumstances.
    assert not any(package.startswith("toy") for package in lock.packages)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("compare-commits", "HEAD", "HEAD"), "the same commit"),
        (("compare-commits", "HEAD", "nowhere"), "is not a commit of"),
        (("compare-commits", "HEAD~1", "HEAD", "--margin", "2"), "is not between 0 and 1"),
        (("compare-commits", "HEAD~1", "HEAD", "--config", "no.json"), "cannot be determined"),
        (("bisect", "HEAD", "HEAD~3", "--scenario", "scenarios/toy.yaml"), "does not descend from"),
    ],
)
def test_bad_input_is_an_error_message(toy: Toy, arguments: tuple[str, ...], expected: str) -> None:
    code, _, err = corebound(toy.folder, *arguments)

    assert code == 2
    assert expected in " ".join(err.split())


@pytest.mark.quick
def test_a_merge_counts_as_the_commits_it_brought(toy: Toy) -> None:
    git(toy.folder, "checkout", "--quiet", "-b", "side", toy.commits[27])
    (toy.folder / "NEWS").write_text("aside\n")
    git(toy.folder, "add", "NEWS")
    git(toy.folder, "commit", "--quiet", "--message", "aside")
    git(toy.folder, "checkout", "--quiet", "-b", "both", toy.commits[29])
    git(toy.folder, "merge", "--quiet", "--no-ff", "--message", "merge", "side")
    try:
        project = open_project(toy.folder / "asv.conf.json", print)
        line = project.between(project.commit(toy.commits[26]), project.commit("both"))
    finally:
        git(toy.folder, "checkout", "--quiet", "main")

    assert [one.subject.partition(":")[0] for one in line] == ["27", "28", "29", "merge"]
    assert [project.is_merge(one) for one in line] == [False, False, False, True]
