"""Check texts that users read for words that are not plain English."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What not to write, as a regular expression, and what to write.
REPLACEMENTS = {
    "anew": "again",
    "are told|is told": "the value itself, or `set`",
    "came to|comes to": "is",
    "figures? any more|no figures?": "no result",
    "goes on with|gone on with": "continues",
    "mends?|mended": "fix",
    "partly undone|more than undone": "partly recovered, more than recovered",
    "passed over": "skipped",
    "it is no": "not a",
    "undecided": "inconclusive",
}
# The JSON value, documented beside its word.
ALLOWED = "`undecided` in JSON"
_BANNED = re.compile("|".join(rf"\b({words})\b" for words in REPLACEMENTS), re.IGNORECASE)
_CODE_OF_TEMPLATES = re.compile(r"{#.*?#}|{%.*?%}|{{.*?}}|<[^>]*>", re.DOTALL)


def find_faults(root: Path) -> list[str]:
    """Find banned words in string literals, templates and docs.

    Returns:
        One line for each fault: the file, its line, the word and its replacement.
    """
    return [
        f"{file.relative_to(root)}:{line}: `{match.group()}`. Write: {_replacement(match)}."
        for file, line, text in _texts(root)
        for match in _BANNED.finditer(text)
    ]


def _replacement(match: re.Match[str]) -> str:
    return list(REPLACEMENTS.values())[(match.lastindex or 1) - 1]


def _texts(root: Path) -> Iterator[tuple[Path, int, str]]:
    for file in sorted((root / "src").rglob("*.py")):
        for line, text in _literals(ast.parse(file.read_text("utf-8"))):
            yield file, line, text
    for file in sorted([*(root / "docs").rglob("*.md"), *root.glob("reports/templates/*.html")]):
        text = file.read_text("utf-8")
        if file.suffix == ".html":
            text = _CODE_OF_TEMPLATES.sub(lambda code: "\n" * code.group().count("\n"), text)
        text = text.replace(ALLOWED, "")
        yield from ((file, number, line) for number, line in enumerate(text.split("\n"), 1))


def _literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    # Single words are keys, and docstrings are for developers.
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in statements or not isinstance(node, ast.Constant):
            continue
        if isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def main(root: Path) -> int:
    """Print the faults. Return 1 if there are any, else 0."""
    faults = find_faults(root)
    sys.stdout.write("\n".join(faults or ["OK: language"]) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(ROOT))
