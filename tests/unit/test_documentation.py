"""The documentation: every page is reachable, and the real parsers accept every example."""

import ast
import functools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from typer.main import get_command

from corebound.cli.app import app
from corebound.fleet.file import load_fleet
from corebound.scenario.loader import load
from support.paths import ROOT

DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted(DOCS.rglob("*.md")) if "generated" not in page.parts),
]
# Of each fenced block: its language and its text.
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


# What completes a part.
A_SCENARIO: dict[str, Any] = {
    "schema": 1,
    "name": "example",
    "title": "An example",
    "question": "Is it valid?",
    "workload": "example:setup",
}
A_FLEET: dict[str, Any] = {
    "schema": 1,
    "name": "example",
    "engine": "slurm",
    "hosts": [{"name": "n1"}],
    "scenarios": ["example.yaml"],
}


class Block(NamedTuple):
    """A block of code on a page of the documentation."""

    page: Path
    text: str

    def __str__(self) -> str:
        """Name it by its page and its line, in reports of pytest."""
        line = self.page.read_text("utf-8").partition(self.text)[0].count("\n") + 1
        return f"{self.page.relative_to(ROOT)}:{line}"


def blocks(language: str) -> list[Block]:
    """All blocks of a language, in the order of their pages."""
    return [
        Block(page, match.group(2))
        for page in PAGES
        for match in _FENCE.finditer(page.read_text("utf-8"))
        if match.group(1) == language
    ]


def commands() -> list[tuple[str, str]]:
    """Each command line of corebound in a shell block, with the block it is from."""
    return [
        (str(block), line)
        for block in blocks("sh")
        for line in block.text.replace("\\\n", " ").split("\n")
        if re.match(r"(sudo )?(\S*/)?corebound ", line)
    ]


def toctree(page: Path) -> list[Path]:
    """The pages that a page's tables of contents list."""
    trees = re.findall(
        r"^```\{toctree\}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    names = [line for tree in trees for line in tree.split("\n") if line and line[0] != ":"]
    return [page.parent / f"{name}.md" for name in names]


def test_the_index_leads_to_every_page() -> None:
    reachable = {DOCS / "index.md"}
    new = reachable
    while new:
        new = {listed for page in new for listed in toctree(page)} - reachable
        reachable |= new
    pages = {page for page in PAGES if DOCS in page.parents and page.parent != DOCS / "adr"}

    assert pages <= reachable


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_each_scenario_or_fleet_and_each_part_of_one_is_valid(block: Block) -> None:
    part = yaml.safe_load(block.text)
    is_fleet = set(part) & {"engine", "wheelhouse"}
    whole = {**(A_FLEET if is_fleet else A_SCENARIO), **part}
    is_existing = "{conda:" in block.text or "{python:" in block.text
    if is_existing and isinstance(whole["workload"], str):
        # Outside of these pages the module that is timed names it.
        whole.setdefault("framework", "pytorch")

    (load_fleet if is_fleet else load)(yaml.safe_dump(whole).encode(), str(block))


@functools.cache
def command_line() -> Any:
    """The tree of all commands, which takes a while to make."""
    return get_command(app)


@pytest.mark.parametrize(("place", "line"), commands())
def test_each_command_has_these_arguments_and_options(place: str, line: str) -> None:
    words = shlex.split(line.removeprefix("sudo "), comments=True)
    words = list(shell_words(words))[1:]
    command = command_line()
    context = command.make_context("corebound", [], resilient_parsing=True)
    while hasattr(command, "get_command") and words:
        name = words.pop(0)
        command = command.get_command(context, name)
        assert command is not None, f"{place}: no command {name}"
        context = type(context)(command, info_name=name, parent=context)

    # It raises a usage error for an unknown option, a missing argument or a wrong choice.
    command.parse_args(context, words)


def shell_words(words: list[str]) -> Iterator[str]:
    """The words of the first command of a line, up to a redirection, a pipe or the next command."""
    for word in words:
        if word in {"|", "||", "&&", ">", ">>", "<", ";"}:
            return
        yield word


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_each_python_example_is_valid_python(block: Block) -> None:
    ast.parse(block.text)
