"""Files of odd kinds and names are reported and skipped, and never block."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from corebound.cli.app import app
from corebound.errors import Fault, InputError
from corebound.records import codec, history_files, jsonl
from corebound.records.commits import read_commits
from support.asv_projects import TIME, import_asv, read_project, result_file, result_tree
from support.build import a_launch, a_run, a_series

# Bytes that are no UTF-8, as Python has them in a path.
ODD_NAME = "r\udcff"


def some_records(folder: Path) -> Path:
    """A run in a folder."""
    file = folder / "host" / f"{ODD_NAME}.jsonl"
    appender = jsonl.begin(a_run(), file)
    appender.append(a_launch())
    appender.close()
    return file


def _device(file: Path) -> None:
    file.symlink_to("/dev/zero")


def _dangling(file: Path) -> None:
    file.symlink_to("nowhere")


KINDS: list[Callable[[Path], None]] = [os.mkfifo, _device, _dangling, Path.mkdir, Path.touch]


@pytest.mark.parametrize("made", KINDS)
def test_other_files_among_records_are_reported_and_the_rest_is_read(
    tmp_path: Path, made: Callable[[Path], None]
) -> None:
    good = some_records(tmp_path)
    odd = tmp_path / "host" / f"a{ODD_NAME}.jsonl"
    made(odd)
    faults: list[Fault] = []

    assert [file for file, _ in jsonl.runs(tmp_path, faults)] == [good]
    assert [fault.file for fault in faults] == [f"{tmp_path}/host/ar\\udcff.jsonl"]


def test_commands_work_with_odd_files_among_the_records(tmp_path: Path) -> None:
    records = tmp_path / f"records{ODD_NAME}"
    some_records(records)
    for kind in ("host", "histories", "profiles", "calibrations", "confirmations"):
        (records / kind).mkdir(exist_ok=True)
        for at, made in enumerate(KINDS):
            made(records / kind / f"{at}{ODD_NAME}{'.jsonl' if kind == 'host' else '.json'}")
    told = ["--records", str(records)]

    site = CliRunner().invoke(app, ["report", "--out", str(tmp_path / f"site{ODD_NAME}"), *told])
    judged = CliRunner().invoke(app, ["regressions", *told])

    assert site.exception is None
    assert judged.exception is None


def test_a_path_with_undecodable_bytes_can_be_recorded() -> None:
    line = codec.encode(replace(a_run(), argv=("corebound", "run", ODD_NAME)))

    assert codec.decode_run(line).argv == ("corebound", "run", "r\\udcff")


def test_a_duplicate_launch_is_reported(tmp_path: Path) -> None:
    file = some_records(tmp_path)
    with file.open("ab") as end:
        end.write(codec.encode(a_launch()))

    stored = jsonl.read(file)

    assert stored.launches == (a_launch(),)
    assert [fault.line for fault in stored.faults] == [3]


@pytest.mark.parametrize("version", [[], {}, None, "2", 3, [2]])
def test_a_result_file_of_an_unknown_version_is_reported(tmp_path: Path, version: object) -> None:
    good, odd = (
        result_file({"time_it": [[1.0]]}),
        result_file({}, version=version, commit_hash="b" * 40),
    )

    found = read_project(result_tree(tmp_path, good, odd, benchmarks=TIME))

    assert found.files == 1
    assert [Path(fault.file).name for fault in found.faults] == ["00000001-env.json"]


@pytest.mark.parametrize("escaped", [True, False])
def test_a_lone_surrogate_in_a_result_is_replaced(tmp_path: Path, *, escaped: bool) -> None:
    half = "a\ud800"
    odd = result_file({"time_it": [[1.0]]}, env_name=half, params={"machine": half, half: half})
    benchmarks = {"time_it": {"pretty_name": half, "unit": half, "code": half, "param_names": []}}

    tree = result_tree(tmp_path, odd, benchmarks=benchmarks)
    for file in (tree / "results").rglob("*.json"):
        told = json.dumps(json.loads(file.read_text()), ensure_ascii=escaped)
        file.write_bytes(told.encode(errors="surrogatepass"))

    import_asv(tree)

    (one,) = history_files.read_all(tmp_path / "records")[0]
    # Each byte that is not UTF-8 becomes a replacement character.
    assert one.code == ("a?" if escaped else "a\ufffd\ufffd\ufffd")


def test_a_pipe_among_results_is_reported(tmp_path: Path) -> None:
    tree = result_tree(tmp_path, result_file({"time_it": [[1.0]]}))
    os.mkfifo(tree / "results" / "box" / "00000009-env.json")
    os.mkfifo(tree / "results" / "benchmarks.json")

    found = read_project(tree)

    assert found.files == 1
    named = {Path(fault.file).name for fault in found.faults}
    assert named == {"00000009-env.json", "benchmarks.json"}


@pytest.mark.parametrize("threshold", [10**400, 1e300, 0, -1, []])
def test_an_invalid_threshold_is_rejected(tmp_path: Path, threshold: object) -> None:
    tree = result_tree(tmp_path, result_file({"time_it": [[1.0]]}))
    configuration = {"project": "p", "regressions_thresholds": {".*": threshold}}
    (tree / "asv.conf.json").write_text(json.dumps(configuration))

    with pytest.raises(InputError, match="threshold"):
        read_project(tree)


def test_a_tiny_threshold_does_not_break_the_page(tmp_path: Path) -> None:
    series = [a_series([5.0] * 12, project="p", margin=1e-300)]
    history_files.keep("p", series, tmp_path / "records")

    words = ["report", "--records", str(tmp_path / "records"), "--out", str(tmp_path / "site")]

    assert CliRunner().invoke(app, words).exception is None


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_commit_of_the_year_14000_has_no_date(tmp_path: Path) -> None:
    def git(*words: str, text: str = "") -> str:
        command = ("git", "-C", str(tmp_path), *words)
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "-q")
    tree = git("hash-object", "-t", "tree", "-w", "--stdin")
    told = f"tree {tree}\nauthor a <a> {{0}} +0000\ncommitter a <a> {{0}} +0000\n\nsubject\n"
    late, usual = (
        git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", text=told.format(at))
        for at in (379_630_108_800, 1_637_362_095)
    )

    found = read_commits(tmp_path, [late, usual])

    assert {sha: one.committed_at for sha, one in found.items()} == {usual: "2021-11-19T22:48:15Z"}
