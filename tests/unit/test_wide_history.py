"""The history that is made up to see what thousands of cells cost."""

from __future__ import annotations

import sys
from pathlib import Path

from support.paths import ROOT

sys.path.insert(0, str(ROOT))

from benchmarks import wide  # no part of the package

from support.asv_projects import read_project


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_it_is_the_same_every_time_and_read_as_any_other(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        wide.make(folder, benchmarks=6, commits=8)
    found = read_project(one).series

    assert files(one) == files(other)
    assert max(len(series.points) for series in found) == 8
    assert {series.host_name for series in found} == {"runner", "desk"}
    assert len({series.cell for series in found}) > 6
