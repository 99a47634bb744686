"""Trees of asv's results in odd places: beside strays, below another name, or pages only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corebound.errors import InputError
from support.asv_projects import TIME, read_project, result_file, result_tree

COMMIT_URL = "https://example.org/commit/"


def a_clone(folder: Path, configuration: str, **told: str) -> Path:
    """A clone with its results at the top and a configuration that is elsewhere in it."""
    result_tree(folder, result_file({"time_it": [[1.0], []]}), benchmarks=TIME)
    (folder / "asv.conf.json").unlink()
    file = folder / configuration
    file.parent.mkdir(parents=True)
    configured = {"project": "thing", "show_commit_url": COMMIT_URL} | told
    file.write_text(f"{{\n  // a comment, as asv allows\n{json.dumps(configured)[1:]}")
    return folder


def a_site(folder: Path) -> Path:
    """What `asv publish` makes."""
    graph = folder / "graphs" / "arch-x86_64" / "branch-main" / "time_it.json"
    graph.parent.mkdir(parents=True)
    graph.write_text("[[1, 2.0]]")
    for name in ("index.json", "info.json", "regressions.json"):
        (folder / name).write_text('{"project": "thing"}')
    return folder


def test_a_stray_machine_beside_the_results_does_not_make_the_clone_their_folder(
    tmp_path: Path,
) -> None:
    clone = a_clone(tmp_path / "thing", "config/asv_box.conf.json")
    (clone / "box").mkdir()
    (clone / "box" / "machine.json").write_text('{"machine": "box"}')

    found = read_project(clone)

    assert (found.project, found.files, found.faults) == ("thing", 1, ())


@pytest.mark.parametrize("named", [".", "results", "results/box", "config", "config/asv.conf.json"])
def test_a_configuration_in_a_folder_beside_the_results_is_theirs(
    tmp_path: Path, named: str
) -> None:
    found = read_project(a_clone(tmp_path / "clone", "config/asv.conf.json") / named)

    assert (found.project, found.series[0].commit_url) == ("thing", COMMIT_URL)


def test_a_configuration_of_any_name_finds_the_results_beside_its_folder(tmp_path: Path) -> None:
    clone = a_clone(tmp_path, "config/asv_box.conf.json", results_dir="../../elsewhere/results")

    assert read_project(clone / "config" / "asv_box.conf.json").project == "thing"


def test_a_configuration_of_other_results_is_not_theirs(tmp_path: Path) -> None:
    clone = a_clone(tmp_path / "clone", "config/asv.conf.json")
    result_tree(clone / "other", result_file({"time_it": [[1.0], []]}), benchmarks=TIME)
    (clone / "config" / "asv.conf.json").unlink()

    assert read_project(clone).project == "clone"


@pytest.mark.parametrize("beside", ["asv.conf.json", "other/asv.conf.json"])
def test_results_that_another_configuration_may_mean_are_not_taken(
    tmp_path: Path, beside: str
) -> None:
    clone = a_clone(tmp_path, "config/asv.conf.json")
    (clone / beside).parent.mkdir(exist_ok=True)
    (clone / beside).write_text("{}")

    with pytest.raises(InputError, match="no result files"):
        read_project(clone / "config")


def test_results_can_be_read_whatever_is_in_the_folder_beside_them(tmp_path: Path) -> None:
    clone = a_clone(tmp_path / "clone", "config/asv.conf.json")
    (clone / "config" / "asv.conf.json").write_text("{")

    assert read_project(clone / "results").project == "clone"


def test_a_configuration_of_another_name_is_to_be_named(tmp_path: Path) -> None:
    clone = a_clone(tmp_path, "config/asv_box.conf.json")

    with pytest.raises(InputError, match=r"asv_box\.conf\.json") as caught:
        read_project(clone / "config")

    assert "Name that file" in caught.value.fix
    assert "delete" not in str(caught.value)


def test_a_configuration_among_result_files_is_no_damaged_one(tmp_path: Path) -> None:
    clone = a_clone(tmp_path, "config/asv_box.conf.json")
    (clone / "config" / "asv_box.conf.json").rename(clone / "results" / "asv_box.conf.json")

    assert read_project(clone / "results").faults == ()


def test_a_folder_of_several_projects_that_are_further_down_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        result_tree(
            tmp_path / name / "clone", result_file({"time_it": [[1.0], []]}), benchmarks=TIME
        )

    # Somebody's notes, and a result file that strayed.
    for name, text in (("notes", "{}"), ("stray", '{"commit_hash": "abc"}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "some.json").write_text(text)

    with pytest.raises(InputError, match="no result files") as caught:
        read_project(tmp_path)

    assert "asv.conf.json" in caught.value.fix


@pytest.mark.parametrize("named", [".", "box"])
def test_results_that_lie_alone_are_read(tmp_path: Path, named: str) -> None:
    tree = result_tree(tmp_path / "tree", result_file({"time_it": [[1.0], []]}))
    alone = (tree / "results").rename(tmp_path / "alone")

    assert read_project(alone / named).files == 1


@pytest.mark.parametrize("named", [".", "graphs", "graphs/arch-x86_64"])
def test_pages_that_asv_published_are_told_from_its_results(tmp_path: Path, named: str) -> None:
    site = a_site(tmp_path / "html")

    with pytest.raises(InputError, match="asv publish") as caught:
        read_project(site / named)

    assert "results_dir" in caught.value.fix
    assert "elete" not in str(caught.value)
