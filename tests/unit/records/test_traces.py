"""Traces are stored complete, compressed and reproducibly."""

import gzip
from pathlib import Path

import pytest

from corebound.errors import InputError
from corebound.records import traces


def a_trace(folder: Path) -> Path:
    file = folder / "trace.json"
    file.write_text('{"traceEvents": []}')
    return file


def test_a_trace_is_stored_by_its_launch(tmp_path: Path) -> None:
    folder = traces.folder_of(tmp_path / "host" / "20260102T030405Z-r1.jsonl")

    kept = traces.keep(a_trace(tmp_path), folder, "net-profile-0")

    assert kept == tmp_path / "host" / "20260102T030405Z-r1.traces" / "net-profile-0.json.gz"
    assert gzip.decompress(kept.read_bytes()) == b'{"traceEvents": []}'
    assert list(folder.iterdir()) == [kept]


def test_storing_a_trace_is_reproducible(tmp_path: Path) -> None:
    one = traces.keep(a_trace(tmp_path), tmp_path / "one", "a").read_bytes()
    other = traces.keep(a_trace(tmp_path), tmp_path / "other", "b").read_bytes()

    assert one == other


def test_an_unwritable_trace_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(InputError, match="--resume"):
        traces.keep(a_trace(tmp_path), tmp_path / "file", "a")
