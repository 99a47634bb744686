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
    ("name", "text", "reported"),
    [
        ("src/a.py", '"""A module."""\n\nfix = "Mend it."\n', True),
        ("docs/a.md", "# A page\n\nMend it.\n", True),
        ("reports/templates/a.html", "{# a\n#}\n<p>Mend it.</p>\n", True),
        ("reports/templates/a.html", "{{ reading((\n  ('Line',\n  'Mend it.'),\n)) }}\n", True),
        ("reports/assets/a.js", "// Mend it.\n\nsay('Mend it.');\n", True),
        ("src/corebound/workflow/templates/a.yml", "on: push\n\n# Mend it.\n", True),
        # Code and values of JSON are not text.
        ("src/a.py", '"""Mend it."""\n\nVERDICTS = ("undecided",)\nanew = 1\n', False),
        ("reports/assets/a.js", "// Mend it.\nmend('anew', undecided / anew);\n", False),
        (
            "reports/templates/a.html",
            '{# "Mend it." #}\n<p class="anew">{{ page.undecided }}</p>\n',
            False,
        ),
    ],
)
def test_a_banned_word_of_a_text_is_reported_with_its_replacement(
    tmp_path: Path, name: str, text: str, reported: bool
) -> None:
    expected = [f"{name}:3: `Mend`. Write: fix."] if reported else []

    assert faults_of(tmp_path, name, text) == expected
