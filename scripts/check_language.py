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
    "at the worst": "at most",
    "are told|is told": "the value itself, or `set`",
    "cannot be told from": "cannot be distinguished from",
    "came to|comes to": "is",
    "enters? no": "is not part of any",
    "figures? any more|no figures?": "no result",
    "for machines": "as data",
    "made elsewhere": "of other tools",
    "goes on with|gone on with": "continues",
    "is in no table": "is unknown",
    "measured no longer": "retired",
    "mends?|mended": "fix",
    "partly undone|more than undone": "partly recovered, more than recovered",
    "passed over": "skipped",
    "it is no": "not a",
    "told apart|tells? apart": "distinguished",
    "undecided": "inconclusive",
    "whence|whither": "from where, to where",
}
_BANNED = re.compile("|".join(rf"\b({words})\b" for words in REPLACEMENTS), re.IGNORECASE)
# A text in quotes with more than one word; single words are keys.
_SENTENCE = re.compile(r"""(["'`])(?=(?:(?!\1)\S)* )(?:\\.|(?!\1)[^\n])*\1""")
_CODE_OF_TEMPLATES = re.compile(r"{#.*?#}|{%.*?%}|{{.*?}}|<[^>]*>", re.DOTALL)


def find_faults(root: Path) -> list[str]:
    """Find banned words in string literals, templates, scripts of pages and docs.

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
    templates = [*root.glob("reports/templates/*"), *root.glob("reports/assets/*.js")]
    written = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    starters = root.glob("src/corebound/workflow/templates/*")
    for file in sorted([*written, *templates, *starters]):
        # Libraries have their version in their name.
        if file.name == "CHANGELOG.md" or re.search(r"-[0-9]", file.name):
            continue
        text = file.read_text("utf-8")
        if file.suffix == ".js":
            yield from ((file, *found) for found in _quoted(text))
            continue
        if file in templates:
            # Texts are also in the arguments of macros.
            for code in _CODE_OF_TEMPLATES.finditer(text):
                before = text.count("\n", 0, code.start())
                if code.group().startswith(("{{", "{%")):
                    yield from ((file, before + at, said) for at, said in _quoted(code.group()))
            text = _CODE_OF_TEMPLATES.sub(lambda code: "\n" * code.group().count("\n"), text)
        yield from ((file, number, line) for number, line in enumerate(text.split("\n"), 1))


def _quoted(code: str) -> Iterator[tuple[int, str]]:
    """The texts in quotes in a piece of code, with their lines from 1."""
    for found in _SENTENCE.finditer(code):
        yield code.count("\n", 0, found.start()) + 1, found.group()


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
