"""`benchmarks.wide`: the synthetic history of thousands of cells is reproducible and readable."""

from pathlib import Path

from benchmarks import wide

from support.asv_projects import read_project


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_a_wide_history_is_reproducible_and_readable(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        wide.make(folder, benchmarks=6, commits=8)
    all_series = read_project(first).series

    assert files(first) == files(second)
    assert max(len(series.points) for series in all_series) == 8
    assert {series.host_name for series in all_series} == {"runner", "desk"}
    assert len({series.cell for series in all_series}) > 6
