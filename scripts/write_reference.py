"""Write the generated pages of the documentation: every command, and every key of a scenario.

`docs/conf.py` calls it before each build, so that these pages cannot differ from the code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from typer.main import get_command

from corebound.cli.app import app
from corebound.scenario.json_schema import schema

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference" / "generated"
# What the parts of a scenario's schema are called on the page, in its order.
PARTS = {
    "Measure": "measure",
    "Launches": "measure.launches",
    "Matrix": "matrix",
    "MatrixEntry": "an entry of matrix.include and matrix.exclude",
    "Profile": "an entry of profiles",
    "Claim": "an entry of claims",
    "Needs": "needs, of a claim",
}


def commands_page() -> str:
    """Every command with its help, usage, arguments and options, as Markdown."""
    root: Any = get_command(app)
    context = root.make_context("corebound", [], resilient_parsing=True)
    return "\n".join(_sections(root, context))


def _sections(group: Any, context: Any) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command.hidden:
            continue
        inner = type(context)(command, info_name=name, parent=context)
        if hasattr(command, "list_commands"):
            yield from _sections(command, inner)
        else:
            yield from _section(command, inner)


def _section(command: Any, context: Any) -> Iterator[str]:
    yield f"## {context.command_path}\n"
    yield _help(command.help or "")
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{context.command_path} {usage}\n```\n"
    rows = [
        row
        for parameter in command.get_params(context)
        if (row := parameter.get_help_record(context)) and not getattr(parameter, "hidden", False)
    ]
    if rows:
        yield "| argument or option | meaning |\n|---|---|"
        yield from (f"| `{_cell(name)}` | {_cell(meaning)} |" for name, meaning in rows)
        yield ""


def _help(text: str) -> str:
    """A command's help; its examples become a block to copy."""
    # Click marks a block that it must not wrap with a backspace.
    prose, _, examples = text.replace("\b", "").partition("Examples:")
    paragraphs = "\n\n".join(" ".join(part.split()) for part in prose.split("\n\n")).rstrip()
    if not examples:
        return f"{paragraphs}\n"
    lines = [line.strip() for line in examples.strip().split("\n")]
    return f"{paragraphs}\n\n```sh\n" + "\n".join(line for line in lines if line) + "\n```\n"


def scenario_keys_page() -> str:
    """Every key of a scenario file with its type, default and meaning, as Markdown."""
    document = schema()
    parts: Mapping[str, Any] = document["$defs"]
    pages = ["## Top level\n", *_keys(document, parts)]
    for name, title in PARTS.items():
        pages += [f"## `{title}`\n", *_keys(parts[name], parts)]
    return "\n".join(pages)


def _keys(part: Mapping[str, Any], parts: Mapping[str, Any]) -> Iterator[str]:
    yield "| key | value | default | meaning |\n|---|---|---|---|"
    for name, key in part["properties"].items():
        required = name in part.get("required", ())
        default = "required" if required else _default(key)
        kind, meaning = _type(key, parts), _cell(key.get("description", ""))
        yield f"| `{name}` | {_cell(kind)} | {_cell(default)} | {meaning} |"
    yield ""


def _default(key: Mapping[str, Any]) -> str:
    # The table of a part has its defaults.
    if "$ref" in key or key.get("default") in (None, {}, []):
        return "–"
    return f"`{_yaml(key['default'])}`"


def _yaml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_yaml(inner)}" for name, inner in value.items()) + "}"
    return "null" if value is None else str(value)


# The words for what a key of this JSON type may be.
_KINDS = {
    "boolean": "`true`, `false`",
    "integer": "whole number",
    "null": "`null`",
    "number": "number",
    "object": "map",
    "string": "text",
}


def _type(key: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    """What a value may be, in words: the words of a choice, bounds of a number, keys of a map."""
    branches = key.get("anyOf") or key.get("oneOf")
    if branches:
        kinds = dict.fromkeys(_type(branch, parts) for branch in branches)
        return "; ".join(kind for kind in kinds if kind)
    if "$ref" in key:
        name = key["$ref"].rpartition("/")[2]
        return PARTS.get(name) or _map(parts[name])
    if "enum" in key or "const" in key:
        return ", ".join(f"`{_yaml(word)}`" for word in key.get("enum") or [key["const"]])
    if key.get("type") == "array":
        return f"list of {_type(key.get('items', {}), parts) or 'values'}"
    return _KINDS.get(key.get("type", ""), "") + _bounds(key)


def _map(part: Mapping[str, Any]) -> str:
    return "`{" + ", ".join(f"{name}: …" for name in part["properties"]) + "}`"


def _bounds(key: Mapping[str, Any]) -> str:
    words = {
        "minimum": "from",
        "exclusiveMinimum": "above",
        "maximum": "to",
        "exclusiveMaximum": "below",
    }
    named = [f"{word} {key[bound]:,}" for bound, word in words.items() if bound in key]
    return f" {' '.join(named)}" if named else ""


def _cell(text: str) -> str:
    """Text as the cell of a Markdown table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def write(folder: Path = FOLDER) -> None:
    """Write the pages; one that is already right keeps its time, so that a build can skip it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in {
        "commands.md": commands_page(),
        "scenario-keys.md": scenario_keys_page(),
    }.items():
        file = folder / name
        if not file.exists() or file.read_text("utf-8") != page:
            file.write_text(page, "utf-8")


if __name__ == "__main__":
    write()
    sys.stdout.write(f"wrote {FOLDER}\n")
