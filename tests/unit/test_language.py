"""Which words scripts/check_language.py refuses in texts that users read."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECK = runpy.run_path(str(ROOT / "scripts/check_language.py"))


def faults_of(root: Path, name: str, text: str) -> list[str]:
    (root / name).parent.mkdir(parents=True)
    (root / name).write_text(text)
    found: list[str] = CHECK["find_faults"](root)
    return found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/a.py", '"""A module."""\n\nfix = "Mend it."\n'),
        ("docs/a.md", "# A page\n\nMend it.\n"),
        ("reports/templates/a.html", "{# a\n#}\n<p>Mend it.</p>\n"),
        ("reports/templates/a.html", "{{ reading((\n  ('Line',\n  'Mend it.'),\n)) }}\n"),
        ("reports/assets/a.js", "// Mend it.\n\nsay('Mend it.');\n"),
        ("src/corebound/workflow/templates/a.yml", "on: push\n\n# Mend it.\n"),
    ],
)
def test_a_banned_word_is_reported_with_its_replacement(
    tmp_path: Path, name: str, text: str
) -> None:
    assert faults_of(tmp_path, name, text) == [f"{name}:3: `Mend`. Write: fix."]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/a.py", '"""Mend it."""\n\nVERDICTS = ("undecided",)\nanew = 1\n'),
        ("reports/assets/a.js", "// Mend it.\nmend('anew', undecided / anew);\n"),
        (
            "reports/templates/a.html",
            '{# "Mend it." #}\n<p class="anew">{{ page.undecided }}</p>\n',
        ),
    ],
)
def test_code_and_json_values_are_not_text(tmp_path: Path, name: str, text: str) -> None:
    assert faults_of(tmp_path, name, text) == []
