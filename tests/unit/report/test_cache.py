"""Compiled templates and hashes of series are used only if what they are of is the same."""

from pathlib import Path

import pytest
from jinja2 import Environment
from msgspec.structs import replace

from corebound.records import cache
from corebound.records.history import HistoryPoint, HistoryPoints
from corebound.report.cache import SeriesDigests, TemplateCache
from corebound.report.render import Renderer
from support.build import a_series

_TEMPLATES = {"overview.html": "{{ page }} is {{ '–' }}\n"}


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The templates that Jinja has compiled since."""
    names: list[str] = []
    compile_ = Environment._compile

    def counted(self: Environment, source: str, filename: str) -> object:
        names.append(filename)
        return compile_(self, source, filename)

    monkeypatch.setattr(Environment, "_compile", counted)
    return names


def _page(folder: Path, templates: dict[str, str] = _TEMPLATES) -> str:
    return Renderer(templates, bytecode_cache=TemplateCache(folder)).page("overview", "<b>")


def test_a_template_is_compiled_once_and_renders_the_same(
    tmp_path: Path, compiled: list[str]
) -> None:
    first, second = _page(tmp_path), _page(tmp_path)
    assert first == second == '&lt;b&gt; is <span class="nil">none</span>\n'
    assert len(compiled) == 1


def test_another_source_is_compiled_anew(tmp_path: Path) -> None:
    _page(tmp_path)
    assert _page(tmp_path, {"overview.html": "other {{ page }}"}) == "other &lt;b&gt;"


def test_what_another_corebound_compiled_is_not_run(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _page(tmp_path)
    monkeypatch.setattr(cache, "code", lambda *_: "another")
    _page(tmp_path)
    assert len(compiled) == 2


def test_a_file_that_was_cut_is_passed_over(tmp_path: Path) -> None:
    whole = _page(tmp_path)
    for file in (tmp_path / "cache").iterdir():
        file.write_bytes(file.read_bytes()[:-7])
    assert _page(tmp_path) == whole


def test_where_nothing_can_be_kept_the_page_is_made_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder would be")
    assert "is" in _page(tmp_path)


@pytest.mark.parametrize(
    "other",
    [
        {"at": "2026-01-02T02:00:01Z"},
        {"run": "another"},
        {"commit": None},
        {"value": 2.5e6},
        {"environment_key": (("kernel", "6.2"),)},
        {"missing": "failed"},
    ],
)
def test_a_series_has_another_hash_if_anything_in_one_of_its_points_differs(
    other: dict[str, object],
) -> None:
    first, second = a_series([1e6, 2e6]).points
    digests = SeriesDigests()

    def digest_of(*points: HistoryPoint) -> str:
        return digests.of(replace(a_series([1e6]), points=HistoryPoints.of(points)))

    assert digest_of(first, second) == digest_of(replace(first), replace(second))
    assert digest_of(first, second) != digest_of(first, replace(second, **other))
