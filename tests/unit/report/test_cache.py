"""Compiled templates are cached, and used only if their source and code are the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import Environment

from corebound.records import cache
from corebound.report.cache import TemplateCache
from corebound.report.render import Renderer

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
