"""A cached value is used only if it is complete and of the same code."""

from pathlib import Path

from corebound.records import cache
from corebound.records.cache import CacheFile


def a_cache(records: Path, *, version: str = "1") -> CacheFile[dict[str, int]]:
    return CacheFile(dict[str, int], records, "name", version=version)


def test_a_cached_value_is_loaded_if_it_is_whole_and_of_the_same_version(tmp_path: Path) -> None:
    assert a_cache(tmp_path).load() is None

    a_cache(tmp_path).keep({"a": 1})

    assert a_cache(tmp_path).load() == {"a": 1}
    assert a_cache(tmp_path, version="2").load() is None
    file = tmp_path / "cache" / "name"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert a_cache(tmp_path).load() is None


def test_an_unwritable_folder_caches_nothing_and_values_are_pinned_in_memory(
    tmp_path: Path,
) -> None:
    (tmp_path / "cache").write_text("in the way")

    a_cache(tmp_path).keep({"a": 1})

    assert a_cache(tmp_path).load() is None
    assert a_cache(tmp_path).keep_pinned({"a": 1}).value() == {"a": 1}


def test_other_code_is_another_version(tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text("a")
    before = cache.code(tmp_path)
    (tmp_path / "one.html").write_text("b")

    assert cache.code(tmp_path) != before
    assert cache.code("stats") != cache.code("records")


def test_a_pinned_value_stays_while_another_process_replaces_it(tmp_path: Path) -> None:
    pinned = a_cache(tmp_path).keep_pinned({"a": 1})
    a_cache(tmp_path).keep({"a": 2})

    assert pinned.value() == {"a": 1}
    assert a_cache(tmp_path).load() == {"a": 2}
