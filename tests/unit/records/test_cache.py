"""A cached value is used only if it is complete and of the same code."""

from __future__ import annotations

from pathlib import Path

from corebound.records import cache


def test_what_was_kept_comes_back(tmp_path: Path) -> None:
    cache.keep({"a": (1, 2)}, tmp_path, "name", version="1")

    assert cache.load(dict[str, tuple[int, int]], tmp_path, "name", version="1") == {"a": (1, 2)}


def test_what_another_version_kept_is_not_believed(tmp_path: Path) -> None:
    cache.keep({"a": 1}, tmp_path, "name", version="1")

    assert cache.load(dict[str, int], tmp_path, "name", version="2") is None


def test_a_damaged_file_is_not_believed(tmp_path: Path) -> None:
    cache.keep({"a": 1}, tmp_path, "name", version="1")
    file = tmp_path / "cache" / "name"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)

    assert cache.load(dict[str, int], tmp_path, "name", version="1") is None


def test_without_a_file_there_is_nothing(tmp_path: Path) -> None:
    assert cache.load(dict[str, int], tmp_path, "name", version="1") is None


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")

    cache.keep({"a": 1}, tmp_path, "name", version="1")

    assert cache.load(dict[str, int], tmp_path, "name", version="1") is None


def test_other_code_is_another_version(tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text("a")
    before = cache.code(tmp_path)
    (tmp_path / "one.html").write_text("b")

    assert cache.code(tmp_path) != before
    assert cache.code("stats") != cache.code("records")
