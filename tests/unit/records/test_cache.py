"""A cached value is used only if it is complete and of the same code."""

from __future__ import annotations

from pathlib import Path

from corebound.records import cache


def test_a_cached_value_is_loaded(tmp_path: Path) -> None:
    cache.keep({"a": (1, 2)}, tmp_path, "name", version="1")

    assert cache.load(dict[str, tuple[int, int]], tmp_path, "name", version="1") == {"a": (1, 2)}


def test_a_value_of_another_version_is_ignored(tmp_path: Path) -> None:
    cache.keep({"a": 1}, tmp_path, "name", version="1")

    assert cache.load(dict[str, int], tmp_path, "name", version="2") is None


def test_a_damaged_cache_file_is_ignored(tmp_path: Path) -> None:
    cache.keep({"a": 1}, tmp_path, "name", version="1")
    file = tmp_path / "cache" / "name"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)

    assert cache.load(dict[str, int], tmp_path, "name", version="1") is None


def test_a_missing_cache_file_gives_none(tmp_path: Path) -> None:
    assert cache.load(dict[str, int], tmp_path, "name", version="1") is None


def test_an_unwritable_folder_caches_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")

    cache.keep({"a": 1}, tmp_path, "name", version="1")

    assert cache.load(dict[str, int], tmp_path, "name", version="1") is None


def test_other_code_is_another_version(tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text("a")
    before = cache.code(tmp_path)
    (tmp_path / "one.html").write_text("b")

    assert cache.code(tmp_path) != before
    assert cache.code("stats") != cache.code("records")
