"""Where asv's results and configuration are found, including unusual folders."""

import json
import subprocess
from pathlib import Path

import pytest

from corebound.errors import InputError
from support.asv_projects import TIME, a_tree, import_asv, read_project, result_file, result_tree
from support.texts import in_order

RECORDS = "reports/records"


def bare(tree: Path) -> Path:
    """The folder of the tree's results, without the configuration beside it."""
    (tree / "asv.conf.json").unlink()
    return tree / "results"


COMMIT_URL = "https://example.org/commit/"


def a_clone(folder: Path, origin: str) -> Path:
    """A repository that was cloned from there."""
    folder.mkdir()
    remote = [("remote", "add", "origin", origin)] * bool(origin)
    for words in (("init", "--quiet"), *remote):
        subprocess.run(("git", "-C", str(folder), *words), check=True)
    return folder


@pytest.mark.parametrize("records", [RECORDS, "kept/elsewhere", "."])
def test_records_below_the_results_are_ignored(tmp_path: Path, records: str) -> None:
    top = bare(a_tree(tmp_path))
    own = top / records

    import_asv(top, "--records", str(own))
    again = import_asv(top, "--records", str(own))
    into_others = import_asv(top, "--records", str(tmp_path / "others"))

    assert (again.stderr, into_others.stderr) == ("", "")
    assert len([*own.glob("histories/*.json")]) == 1


def test_pages_published_into_the_results_are_ignored_but_a_machine_named_graphs_is_read(
    tmp_path: Path,
) -> None:
    top, other = bare(a_tree(tmp_path / "one")), bare(a_tree(tmp_path / "other"))
    graph = top / "graphs" / "arch-x86_64" / "branch-main" / "time_it.json"
    graph.parent.mkdir(parents=True)
    graph.write_text("[[1, 2.0]]")
    for name in ("index.json", "info.json", "regressions.json"):
        (top / name).write_text('{"project": "trees"}')
    (other / "box").rename(other / "graphs")
    (other / "graphs" / "machine.json").write_text("{}")
    (other / "index.json").write_text("{}")

    assert read_project(top).faults == ()
    assert read_project(other).files == 1


@pytest.mark.parametrize(
    ("repo", "address"),
    [
        ("https://github.com/someone/thing.git", "https://github.com/someone/thing/commit/"),
        ("https://github.com/$OWNER/$REPO.git", None),
        ("..", None),
    ],
)
def test_an_unfilled_url_template_is_no_link(
    tmp_path: Path, repo: str, address: str | None
) -> None:
    tree = a_tree(tmp_path, benchmarks=None)
    configuration = {"show_commit_url": "https://github.com/$OWNER/$REPO/commit/", "repo": repo}
    (tree / "asv.conf.json").write_text(json.dumps(configuration))

    assert read_project(tree).series[0].commit_url == address


@pytest.mark.parametrize(
    ("origin", "configured", "address"),
    [
        ("git@github.com:someone/thing.git", "", "https://github.com/someone/thing/commit/"),
        ("https://example.org/thing.git", "", None),
        ("", "", None),
        ("https://github.com/someone/thing", COMMIT_URL, COMMIT_URL),
    ],
)
def test_commits_link_to_the_configured_url_or_the_origin_of_the_named_clone(
    tmp_path: Path, origin: str, configured: str, address: str | None
) -> None:
    tree = a_tree(tmp_path / "tree", benchmarks=None)
    (tree / "asv.conf.json").write_text(json.dumps({"show_commit_url": configured or None}))
    clone = a_clone(tmp_path / "clone", origin)

    read_from = tree if configured else bare(tree)
    assert read_project(read_from, repo=clone).series[0].commit_url == address


def test_a_name_guessed_from_a_folder_is_reported(tmp_path: Path) -> None:
    tree = a_tree(tmp_path / "someone")
    bare(tree).rename(tree / ".asv")
    records = ("--records", str(tmp_path / "records"))

    said = import_asv(tree / ".asv", *records).stdout.splitlines()
    named = import_asv(tree / ".asv", *records, "--project", "thing").stdout

    configured = import_asv(a_tree(tmp_path / "configured")).stdout

    assert "after its folder" not in configured
    assert said[0].startswith("someone: ")
    assert in_order(said[-1], "after its folder", "someone")
    assert "after its folder" not in named


def test_a_machine_s_folder_uses_the_benchmarks_above_it(tmp_path: Path) -> None:
    about = {"track_it": {"unit": "particles", "param_names": []}}
    tree = result_tree(tmp_path / "thing", result_file({"track_it": [[1.0], []]}), benchmarks=about)
    (tree / ".asv").mkdir()
    bare(tree).rename(tree / ".asv" / "results")

    found = read_project(tree / ".asv" / "results" / "box")

    assert (found.project, found.series[0].unit, found.faults) == ("thing", "particles", ())


def test_a_machine_s_folder_uses_the_configuration_above_it(tmp_path: Path) -> None:
    other = result_file({"time_it": [[2.0], []]}, params={"machine": "other"})
    tree = a_tree(tmp_path)
    (tree / "results" / "other").mkdir()
    (tree / "results" / "other" / "0-env.json").write_text(json.dumps(other))

    found = read_project(tree / "results" / "other")

    assert (found.project, [one.host for one in found.series]) == ("trees", ["other"])


def test_a_count_of_one_is_singular(tmp_path: Path) -> None:
    tree = result_tree(
        tmp_path, result_file({"time_it": [[1.0], []], "time_old": [None, []]}), benchmarks=TIME
    )

    said = import_asv(tree).stdout.splitlines()

    assert in_order(said[0], "trees: ", "1 result file,", "1 benchmark ")
    assert in_order(said[1], "2 series", "2 points", "1 of them", "2 new")
    assert in_order(said[2], "1 point ", "failed (1)")
    imported = json.loads(import_asv(tree, "--project", "other", "--json").stdout)
    assert (imported["result_files"], imported["benchmarks_that_exist_no_longer"]) == (1, 1)


def a_clone_beside(folder: Path, configuration: str, **keys: str) -> Path:
    """A clone with its results at the top and a configuration that is elsewhere in it."""
    a_tree(folder)
    (folder / "asv.conf.json").unlink()
    file = folder / configuration
    file.parent.mkdir(parents=True)
    configured = {"project": "thing", "show_commit_url": COMMIT_URL} | keys
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


def test_a_stray_machine_folder_does_not_hide_the_results(tmp_path: Path) -> None:
    clone = a_clone_beside(tmp_path / "thing", "config/asv_box.conf.json")
    (clone / "box").mkdir()
    (clone / "box" / "machine.json").write_text('{"machine": "box"}')

    found = read_project(clone)

    assert (found.project, found.files, found.faults) == ("thing", 1, ())


@pytest.mark.parametrize("named", [".", "results", "results/box", "config", "config/asv.conf.json"])
def test_a_configuration_in_a_sibling_folder_is_used(tmp_path: Path, named: str) -> None:
    found = read_project(a_clone_beside(tmp_path / "clone", "config/asv.conf.json") / named)

    assert (found.project, found.series[0].commit_url) == ("thing", COMMIT_URL)


def test_a_configuration_with_any_name_finds_its_results(tmp_path: Path) -> None:
    clone = a_clone_beside(
        tmp_path, "config/asv_box.conf.json", results_dir="../../elsewhere/results"
    )

    assert read_project(clone / "config" / "asv_box.conf.json").project == "thing"


def test_a_configuration_that_is_not_of_these_results_does_not_matter(tmp_path: Path) -> None:
    of_others, damaged = (
        a_clone_beside(tmp_path / name, "config/asv.conf.json") for name in ("others", "damaged")
    )
    among = a_clone_beside(tmp_path / "among", "config/asv_box.conf.json")
    a_tree(of_others / "other")
    (of_others / "config" / "asv.conf.json").unlink()
    (damaged / "config" / "asv.conf.json").write_text("{")
    (among / "config" / "asv_box.conf.json").rename(among / "results" / "asv_box.conf.json")

    assert read_project(of_others).project == "others"
    assert read_project(damaged / "results").project == "damaged"
    # Among the results it is no damaged one.
    assert read_project(among / "results").faults == ()


@pytest.mark.parametrize("beside", ["asv.conf.json", "other/asv.conf.json"])
def test_results_of_another_configuration_are_not_taken(tmp_path: Path, beside: str) -> None:
    clone = a_clone_beside(tmp_path, "config/asv.conf.json")
    (clone / beside).parent.mkdir(exist_ok=True)
    (clone / beside).write_text("{}")

    with pytest.raises(InputError, match="no result files"):
        read_project(clone / "config")


def test_a_configuration_with_another_name_must_be_given(tmp_path: Path) -> None:
    clone = a_clone_beside(tmp_path, "config/asv_box.conf.json")

    with pytest.raises(InputError, match=r"asv_box\.conf\.json") as caught:
        read_project(clone / "config")

    assert "Name that file" in caught.value.fix
    assert "delete" not in str(caught.value)


def test_a_folder_with_several_projects_is_rejected(tmp_path: Path) -> None:
    for name in ("one", "two"):
        a_tree(tmp_path / name / "clone")

    # Somebody's notes, and a result file that strayed.
    for name, text in (("notes", "{}"), ("stray", '{"commit_hash": "abc"}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "some.json").write_text(text)

    with pytest.raises(InputError, match="no result files") as caught:
        read_project(tmp_path)

    assert "asv.conf.json" in caught.value.fix


@pytest.mark.parametrize("named", [".", "box"])
def test_results_without_anything_else_are_read(tmp_path: Path, named: str) -> None:
    tree = a_tree(tmp_path / "tree", benchmarks=None)
    alone = (tree / "results").rename(tmp_path / "alone")

    assert read_project(alone / named).files == 1


@pytest.mark.parametrize("named", [".", "graphs", "graphs/arch-x86_64"])
def test_published_pages_are_reported_as_such(tmp_path: Path, named: str) -> None:
    site = a_site(tmp_path / "html")

    with pytest.raises(InputError, match="asv publish") as caught:
        read_project(site / named)

    assert "results_dir" in caught.value.fix
    assert "elete" not in str(caught.value)
