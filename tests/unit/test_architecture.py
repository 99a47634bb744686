"""docs/architecture.md names packages and modules that exist, and no package is missing."""

import ast
import re
import tomllib

import pytest

from corebound.scenario.objectives import OBJECTIVES
from corebound.scenario.runtimes import FRAMEWORKS
from support.paths import ROOT

SOURCE = ROOT / "src" / "corebound"
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCES = {
    str(path.relative_to(SOURCE)): path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py"))
}
QUOTED = re.findall(r"`([^`\s]+)`", TEXT)
# `planning/placement`, `machine/doctor/checks_*.py`, `cli/commands/NAME.py`
PATHS = sorted({name for name in QUOTED if re.fullmatch(r"(?:[\w*]+/)+(?:[\w*]+(?:\.py)?)?", name)})
# The first column of the table of packages.
PACKAGES = sorted(
    name
    for row in re.findall(r"^\| (`.+?)(?: \(.\))? \|", TEXT, flags=re.MULTILINE)
    for name in re.findall(r"`(\w+)`", row)
)


@pytest.mark.parametrize("path", PATHS)
def test_each_path_that_it_names_exists(path: str) -> None:
    # A word in capitals stands for the name of something new.
    pattern = re.sub(r"[A-Z]{3,}", "*", path.rstrip("/"))

    assert any(
        list(folder.glob(pattern + suffix)) for folder in (SOURCE, ROOT) for suffix in ("", ".py")
    )


@pytest.mark.parametrize(("name", "path"), re.findall(r"`([A-Z]+)` in `([\w/]+\.py)`", TEXT))
def test_each_registry_that_it_names_exists(name: str, path: str) -> None:
    assert re.search(rf"^_?{name}\b.* = ", (SOURCE / path).read_text("utf-8"), flags=re.MULTILINE)


def test_the_list_of_packages_is_that_of_the_layers() -> None:
    """What import-linter enforces, in its order; a letter marks those of one layer."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [re.split(r" \| ", layer) for layer in contracts["contracts"][0]["layers"]]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*)(?: \((.)\))? \|", TEXT, flags=re.MULTILINE)
    listed: list[tuple[str, list[str]]] = []
    for names, letter in rows:
        if not listed or not letter or listed[-1][0] != letter:
            listed.append((letter, []))
        listed[-1][1].extend(re.findall(r"\w+", names))
    # The last layer has two rows, because only one of them reads a clock.
    *others, texts, clocks = (sorted(names) for _, names in listed)

    assert [*others, sorted([*texts, *clocks])] == [sorted(layer) for layer in layers]


def test_it_names_every_package() -> None:
    packages = {entry.name for entry in SOURCE.iterdir() if (entry / "__init__.py").exists()}

    assert packages <= set(PACKAGES)


def _names(node: ast.AST) -> set[str]:
    """What a node of code names: a variable, an attribute, an argument, an import or a text."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.name.rpartition(".")[2] for alias in node.names}
    return {str(getattr(node, field, None)) for field in ("id", "attr", "arg", "value")}


@pytest.mark.parametrize(
    ("example", "most"), re.findall(r"^\| [^|]+ \| `(\w+)` \| (\d+) \|$", TEXT, flags=re.MULTILINE)
)
def test_what_is_declared_once_is_named_in_few_modules(example: str, most: str) -> None:
    naming = [
        path
        for path, source in SOURCES.items()
        if example in source
        and any(example in _names(node) for node in ast.walk(ast.parse(source)))
    ]

    assert len(naming) <= int(most), naming


@pytest.mark.parametrize(
    ("subject", "names", "modules"),
    [
        # What distinguishes runtimes is in `scenario/runtimes`.
        ("framework", {*FRAMEWORKS} - {"none"}, {"worker/workloads/served_text.py"}),
        # The first is the default, and `rate` has a bound and traffic of its own.
        ("objective", {*OBJECTIVES} - {"latency", "rate"}, set()),
    ],
)
def test_modules_ask_declarations_instead_of_comparing_names(
    subject: str, names: set[str], modules: set[str]
) -> None:
    comparing = {
        path
        for path, source in SOURCES.items()
        if subject in source
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare) and subject in ast.unparse(node.left)
        for constant in ast.walk(node)
        if isinstance(constant, ast.Constant) and constant.value in names
    }

    assert comparing == modules
