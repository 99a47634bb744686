"""Which changelog fragments scripts/check_changelog.py accepts."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECK = runpy.run_path(str(ROOT / "scripts/check_changelog.py"))
SETTINGS = """
[tool.towncrier]
directory = "changelog.d"
[[tool.towncrier.type]]
directory = "feature"
[[tool.towncrier.type]]
directory = "fix"
"""


def faults_of(tmp_path: Path, name: str, text: str) -> list[str]:
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d" / name).write_text(text)
    found: list[str] = CHECK["find_faults"](tmp_path)
    return found


@pytest.mark.parametrize("name", ["+a.fix.md", "+a.feature.md", ".gitkeep"])
def test_a_declared_type_and_40_words_are_accepted(tmp_path: Path, name: str) -> None:
    assert faults_of(tmp_path, name, "word " * 40) == []


@pytest.mark.parametrize("name", ["+a.bugfix.md", "+a.md", "+a.fix.rst", "fix.md", "+a.fix.b.md"])
def test_a_name_without_a_declared_type_is_refused(tmp_path: Path, name: str) -> None:
    (fault,) = faults_of(tmp_path, name, "A fix.")

    assert fault.startswith(f"changelog.d/{name}: no declared type.")
    assert "TYPE is one of feature, fix." in fault


def test_a_fragment_has_at_most_40_words(tmp_path: Path) -> None:
    assert faults_of(tmp_path, "+a.fix.md", "word " * 41) == [
        "changelog.d/+a.fix.md: 41 words. Shorten it to at most 40."
    ]


def test_an_empty_fragment_is_refused(tmp_path: Path) -> None:
    assert faults_of(tmp_path, "+a.fix.md", "\n") == [
        "changelog.d/+a.fix.md: empty. Describe the change in one or two sentences."
    ]
