"""The header that all `--json` output has, and errors as JSON."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from corebound import CoreboundError, __version__, load
from corebound.cli.app import app
from corebound.cli.output.json import JSON_SCHEMA, indented_json, result_json
from corebound.scenario.matrix import expand
from support.build import a_launch, a_run, a_scenario, write_records
from support.commands import corebound

SCENARIO = """\
schema: 1
name: sums
title: Sums
question: How long?
workload: {command: ["true"]}
matrix: {binding: [none, one-cpu]}
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scenario, and the records of a run of another one."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "sums.yaml").write_text(SCENARIO)
    (folder / "bmf.json").write_text('{"sum": {"latency": {"value": 1.5}}}')
    launches = [
        a_launch(cell=cell, block=block, position=position)
        for block in range(2)
        for position, cell in enumerate(expand(a_scenario(), "a.yaml"))
    ]
    write_records(folder / "reports" / "records", a_run(), *launches)
    return folder


def document_of(folder: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    completed = corebound(folder, *arguments, in_process=True)
    assert completed.code == code, completed
    document: dict[str, Any] = json.loads(completed.out)
    return document


@pytest.mark.parametrize(
    "arguments",
    [
        ("topology", "--json"),
        ("plan", "sums.yaml", "--json"),
        ("regressions", "--json"),
        ("regressions", "--format", "json"),
        ("environment", "list", "--json"),
        ("import", "bencher", "bmf.json", "--json"),
        ("check", "sums.yaml", "--json"),
        ("export", "csv", "--out", "launches.csv", "--json"),
        ("report", "--out", "site", "--json"),
        ("list", "--json"),
        ("show", "r1", "--json"),
        ("doctor", "--json"),
    ],
    ids=" ".join,
)
def test_every_command_has_the_same_header(suite: Path, arguments: tuple[str, ...]) -> None:
    document = document_of(suite, *arguments)

    words = 2 if arguments[0] in {"environment", "import"} else 1
    assert document["corebound"] == {
        "schema": JSON_SCHEMA,
        "version": __version__,
        "command": " ".join(arguments[:words]),
    }
    assert document["error"] is None


def test_an_error_is_json_with_what_where_and_fix_as_in_the_api(suite: Path) -> None:
    document = document_of(suite, "compare", "r1", "nothing", "--json", code=2)
    of_group = document_of(suite, "import", "hyperfine", "none.json", "--json", code=2)
    with pytest.raises(CoreboundError) as caught:
        load(suite / "reports" / "records").compare("r1", "nothing")

    assert document["corebound"]["command"] == "compare"
    assert of_group["corebound"]["command"] == "import hyperfine"
    error = document["error"]
    assert "nothing" in error["what"]
    assert error["fix"]
    assert (error["exit_code"], error["faults"]) == (2, [])
    # The fix names arguments instead of options.
    same = {"where": "", "fix": ""}
    assert {**caught.value.document, **same} == {**error, **same}


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("compare", "--jsn", "--json"), "corebound compare"),
        (("run", "--profile", "fast", "sums.yaml", "--json"), "corebound run"),
        (("bisect", "a", "--json"), "corebound bisect"),
        (("regressions", "--format=json", "--al"), "corebound regressions"),
        (("import", "junit", "--json"), "corebound import"),
        (("comparee", "--json"), "corebound"),
    ],
    ids=" ".join,
)
def test_a_usage_error_is_the_same_object(
    suite: Path, arguments: tuple[str, ...], where: str
) -> None:
    error = document_of(suite, *arguments, code=2)["error"]

    assert (error["where"], error["exit_code"], error["faults"]) == (where, 2, [])
    assert error["what"]
    assert f"{where} --help" in error["fix"]


def test_a_result_cannot_replace_the_header() -> None:
    with pytest.raises(ValueError, match="header"):
        result_json({"error": "none"})


@pytest.mark.parametrize("items", [[], [{"id": 1, "because": "a\nb"}, {}, [2, {}]]], ids=len)
def test_the_items_of_an_iterator_are_printed_as_those_of_a_list(items: list[object]) -> None:
    whole = "".join(result_json({"number": 1, "items": items}))

    assert "".join(result_json({"number": 1, "items": iter(items)})) == whole
    assert whole == indented_json(json.loads(whole)) + "\n"


def test_the_output_of_a_launch_is_json_with_its_cell(suite: Path) -> None:
    (cell, *_) = document_of(suite, "show", "r1", "--json")["cells"]

    document = document_of(suite, "log", "r1", "0-0", "--json")

    assert {"id", "scenario", "cell", "axes"} <= document.keys()
    assert document.keys() >= {"launch", "status", "log"}
    assert cell["scenario"] == document["scenario"]


def all_commands(group: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of corebound with its words."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from all_commands(command, *words, name)
        else:
            yield (*words, name), command


def test_every_command_has_json_but_those_that_print_text_for_programs() -> None:
    without = {
        " ".join(words)
        for words, command in all_commands(get_command(app))
        if not any("--json" in parameter.opts for parameter in command.params)
    }

    # A JSON Schema, and a shell script.
    assert without == {"schema", "completion"}
