"""The folder of a run's launches: room below its path, the files where TMPDIR says."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from corebound.errors import HostError
from corebound.launch import scratch


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder whose path alone fills a socket's address."""
    folder = tmp_path / ("x" * 107)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_folder_with_a_long_path_gets_a_short_name_and_stays_where_it_is(
    temporary: Path, tmp_path: Path
) -> None:
    made = scratch.make(tmp_path)

    assert made.parent == tmp_path
    assert made.resolve().parent == temporary.resolve()
    assert made.is_dir()


def test_a_folder_with_a_short_path_needs_no_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")

    made = scratch.make()

    made.rmdir()  # which fails for a link
    assert made.parent == Path("/tmp")


def test_where_no_short_name_can_be_made_it_is_said_how_long_tmpdir_may_be(
    temporary: Path, tmp_path: Path
) -> None:
    with pytest.raises(HostError) as caught:
        scratch.make(tmp_path / "missing")

    # 107 of an address, less 64 for what is below, less `/corebound-` and 8 at random.
    assert "at most 24 characters" in str(caught.value)
    assert str(temporary) in str(caught.value)
    assert list(temporary.iterdir()) == []
