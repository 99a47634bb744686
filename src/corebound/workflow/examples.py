"""The scenarios that come with corebound: in a checkout's `scenarios/`, or in the wheel."""

import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from msgspec import Struct

from corebound.errors import InputError
from corebound.scenario.cell import PROJECT
from corebound.scenario.fault_wording import closest
from corebound.scenario.loader import load
from corebound.workflow.init import WriteResult, write_files

# Files of a checkout's `scenarios/` may name the schema in its `docs/`.
_SCHEMA_LINE = "# yaml-language-server"


class Example(Struct, frozen=True, kw_only=True):
    """A scenario that comes with corebound; `name` is that of its file, without `.yaml`."""

    name: str
    title: str
    question: str


def examples() -> tuple[Example, ...]:
    """All scenarios that come with corebound and measure something else than it, by name."""
    loaded = {file.stem: load(file.read_bytes(), file.name) for file in _folder().glob("*.yaml")}
    return tuple(
        Example(name=name, title=scenario.title, question=scenario.question)
        for name, scenario in sorted(loaded.items())
        if scenario.environment != PROJECT
    )


def example_texts(name: str) -> dict[str, str]:
    """The files of one scenario, by name: itself, and the modules whose functions it measures.

    Raises:
        InputError: No scenario of that name comes with corebound.
    """
    folder = _folder()
    file = folder / f"{name}.yaml"
    names = sorted(other.stem for other in folder.glob("*.yaml"))
    if name not in names:
        close = closest(name, names)
        raise InputError(
            what="no scenario of that name comes with corebound.",
            where=name,
            fix=f"Did you mean `{close}`?" if close else "`corebound example` lists them.",
        )
    lines = file.read_text("utf-8").splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith(_SCHEMA_LINE))
    modules = (
        module for module in folder.glob("*.py") if re.search(rf"\b{module.stem}:[a-z_]", text)
    )
    return {file.name: text} | {module.name: module.read_text("utf-8") for module in modules}


class WrittenExamples(Struct, frozen=True, kw_only=True):
    """The folder of written examples, and what became of each file."""

    folder: str
    files: Mapping[str, WriteResult]


def write_examples(*names: str, into: str | PathLike[str] = ".") -> WrittenExamples:
    """Write scenarios that come with corebound as files, with the modules that they measure.

    Existing files stay as they are.

    Args:
        names: The names that `examples` lists.
        into: The folder to write them to.

    Raises:
        InputError: No scenario has a name, or the folder cannot be written.
    """
    texts = {file: text for name in names for file, text in example_texts(name).items()}
    folder = Path(into)
    return WrittenExamples(folder=str(folder.resolve()), files=write_files(texts, folder))


def _folder() -> Path:
    installed = Path(__file__).parent / "examples"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "scenarios"
