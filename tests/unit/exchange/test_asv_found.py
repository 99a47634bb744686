"""What is found in a tree of asv's results: its project, its links, and files that are none."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.asv_projects import TIME, import_asv, read_project, result_file, result_tree

RECORDS = "reports/records"


def bare(tree: Path) -> Path:
    """The folder of the tree's results, without the configuration beside it."""
    (tree / "asv.conf.json").unlink()
    return tree / "results"


def a_clone(folder: Path, origin: str) -> Path:
    """A repository that was cloned from there."""
    for words in (("init", "--quiet"), ("remote", "add", "origin", origin)):
        folder.mkdir(exist_ok=True)
        subprocess.run(("git", "-C", str(folder), *words), check=True)
    return folder


@pytest.mark.parametrize("records", [RECORDS, "kept/elsewhere", "."])
def test_records_kept_below_the_results_are_no_results(tmp_path: Path, records: str) -> None:
    top = bare(result_tree(tmp_path, result_file({"time_it": [[1.0], []]}), benchmarks=TIME))
    own = top / records

    import_asv(top, "--records", str(own))
    again = import_asv(top, "--records", str(own))
    into_others = import_asv(top, "--records", str(tmp_path / "others"))

    assert (again.stderr, into_others.stderr) == ("", "")
    assert len([*own.glob("histories/*.json")]) == 1


def test_what_asv_published_into_its_results_is_passed_over_in_silence(tmp_path: Path) -> None:
    top = bare(result_tree(tmp_path, result_file({"time_it": [[1.0], []]}), benchmarks=TIME))
    graph = top / "graphs" / "arch-x86_64" / "branch-main" / "time_it.json"
    graph.parent.mkdir(parents=True)
    graph.write_text("[[1, 2.0]]")
    for name in ("index.json", "info.json", "regressions.json"):
        (top / name).write_text('{"project": "trees"}')

    assert read_project(top).faults == ()


def test_a_machine_that_is_called_as_a_folder_of_asvs_pages_is_read(tmp_path: Path) -> None:
    top = bare(result_tree(tmp_path, result_file({"time_it": [[1.0], []]}), benchmarks=TIME))
    (top / "box").rename(top / "graphs")
    (top / "graphs" / "machine.json").write_text("{}")
    (top / "index.json").write_text("{}")

    assert read_project(top).files == 1


@pytest.mark.parametrize(
    ("repo", "address"),
    [
        ("https://github.com/someone/thing.git", "https://github.com/someone/thing/commit/"),
        ("https://github.com/$OWNER/$REPO.git", None),
        ("..", None),
    ],
)
def test_an_address_with_variables_that_nobody_filled_in_is_no_link(
    tmp_path: Path, repo: str, address: str | None
) -> None:
    tree = result_tree(tmp_path, result_file({"time_it": [[1.0], []]}))
    told = {"show_commit_url": "https://github.com/$OWNER/$REPO/commit/", "repo": repo}
    (tree / "asv.conf.json").write_text(json.dumps(told))

    assert read_project(tree).series[0].commit_url == address


@pytest.mark.parametrize(
    ("origin", "address"),
    [
        ("git@github.com:someone/thing.git", "https://github.com/someone/thing/commit/"),
        ("https://example.org/thing.git", None),
    ],
)
def test_commits_can_be_seen_where_the_clone_that_was_named_came_from(
    tmp_path: Path, origin: str, address: str | None
) -> None:
    top = bare(result_tree(tmp_path / "tree", result_file({"time_it": [[1.0], []]})))
    clone = a_clone(tmp_path / "clone", origin)

    assert read_project(top, repo=clone).series[0].commit_url == address


def test_what_is_configured_goes_before_where_a_clone_came_from(tmp_path: Path) -> None:
    tree = result_tree(tmp_path / "tree", result_file({"time_it": [[1.0], []]}))
    (tree / "asv.conf.json").write_text('{"show_commit_url": "https://example.org/commit/"}')
    clone = a_clone(tmp_path / "clone", "https://github.com/someone/thing")

    assert read_project(tree, repo=clone).series[0].commit_url == "https://example.org/commit/"


def test_a_clone_that_came_from_nowhere_has_no_links(tmp_path: Path) -> None:
    top = bare(result_tree(tmp_path / "tree", result_file({"time_it": [[1.0], []]})))
    clone = tmp_path / "clone"
    clone.mkdir()
    subprocess.run(("git", "-C", str(clone), "init", "--quiet"), check=True)

    assert read_project(top, repo=clone).series[0].commit_url is None


def test_a_name_taken_from_a_folder_is_told_with_what_changes_it(tmp_path: Path) -> None:
    tree = result_tree(tmp_path / "someone", result_file({"time_it": [[1.0], []]}), benchmarks=TIME)
    bare(tree).rename(tree / ".asv")
    records = ("--records", str(tmp_path / "records"))

    said = import_asv(tree / ".asv", *records).stdout.splitlines()
    named = import_asv(tree / ".asv", *records, "--project", "thing").stdout

    assert said[0].startswith("someone: ")
    assert "The project is named after its folder, someone" in said[-1]
    assert "after its folder" not in named


def test_a_name_that_is_configured_is_no_guess(tmp_path: Path) -> None:
    tree = result_tree(tmp_path, result_file({"time_it": [[1.0], []]}), benchmarks=TIME)

    assert "after its folder" not in import_asv(tree).stdout


def test_a_machines_folder_is_known_by_the_benchmarks_one_folder_up(tmp_path: Path) -> None:
    about = {"track_it": {"unit": "particles", "param_names": []}}
    tree = result_tree(tmp_path / "thing", result_file({"track_it": [[1.0], []]}), benchmarks=about)
    (tree / ".asv").mkdir()
    bare(tree).rename(tree / ".asv" / "results")

    found = read_project(tree / ".asv" / "results" / "box")

    assert (found.project, found.series[0].unit, found.faults) == ("thing", "particles", ())


def test_a_machines_folder_is_of_the_project_that_is_configured_above(tmp_path: Path) -> None:
    other = result_file({"time_it": [[2.0], []]}, params={"machine": "other"})
    tree = result_tree(tmp_path, result_file({"time_it": [[1.0], []]}), benchmarks=TIME)
    (tree / "results" / "other").mkdir()
    (tree / "results" / "other" / "0-env.json").write_text(json.dumps(other))

    found = read_project(tree / "results" / "other")

    assert (found.project, [one.host for one in found.series]) == ("trees", ["other"])


def test_one_of_a_kind_is_told_as_one(tmp_path: Path) -> None:
    tree = result_tree(
        tmp_path, result_file({"time_it": [[1.0], []], "time_old": [None, []]}), benchmarks=TIME
    )

    said = import_asv(tree).stdout.splitlines()

    assert said[:3] == [
        "trees: 1 result file, 1 benchmark that no longer exists",
        "2 series of 2 points, 1 of them with a result; 2 new",
        "1 point has no result: it failed (1)",
    ]
    told = json.loads(import_asv(tree, "--project", "other", "--json").stdout)
    assert (told["result_files"], told["benchmarks_that_exist_no_longer"]) == (1, 1)
