"""Commands: their parameters, what runs around them, their files and their variables."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.errors import InputError, ScenarioFaults
from corebound.scenario.files import name_in_working_directory
from corebound.scenario.loader import load
from corebound.scenario.models import CommandWorkload
from support.faults import fault_cases, unlike

HEAD = "schema: 1\nname: a\ntitle: T\nquestion: Q?\n"
SORT = HEAD + "workload: {command: [sort, '{file}']}\n"


def faults(text: str, existing: tuple[str, ...] = (), missing: str | None = None) -> str:
    def find_environment(name: str) -> None:
        if missing is not None:
            raise InputError(what=missing.format(name), where="", fix="Create it.")

    with pytest.raises(ScenarioFaults) as caught:
        load(text.encode(), "f.yaml", None, existing.__contains__, find_environment)
    return str(caught.value)


def a_command(**keys: Any) -> CommandWorkload:
    return CommandWorkload.model_validate(keys)


def test_parameters_replace_their_names_in_braces_and_nothing_else() -> None:
    workload = a_command(command=["awk", "{print $1} {row} {}", "{rows}.{rows}"])

    assert workload.arguments({"rows": "10"})["command"] == ("awk", "{print $1} {row} {}", "10.10")


def test_a_value_in_a_shell_is_quoted() -> None:
    workload = CommandWorkload.model_validate({"shell": True, "command": "cat {file} | wc -l"})

    assert workload.arguments({"file": "a b; rm x"})["command"] == (
        "/bin/sh",
        "-c",
        "cat 'a b; rm x' | wc -l",
    )


def test_double_braces_are_the_text_in_single_braces() -> None:
    workload = a_command(command=["awk", "{{print}}", "{{rows}} {rows}"])

    assert workload.arguments({"rows": "10"})["command"] == ("awk", "{print}", "{rows} 10")


@given(st.lists(st.text().filter(lambda text: "{{" not in text), min_size=1).map(tuple))
def test_without_parameters_every_word_stays_as_it_is(words: tuple[str, ...]) -> None:
    assert a_command(command=words).arguments({})["command"] == words


@fault_cases("commands", sort=SORT, head=HEAD)
def test_what_contradicts_itself_is_a_fault(text: str, expected: list[str]) -> None:
    existing = ("a/data", "b/../a/data/", "/x/data", "../data", "data")

    assert not unlike(faults(text, existing), expected)


def test_files_and_programs_with_a_path_must_exist() -> None:
    text = HEAD + "workload: {command: [./run.sh], prepare: [rm, x]}\nfiles: [data/, here]\n"

    assert faults(text, ("here",)) == (
        "f.yaml:5: there is no program `./run.sh`. A path is relative to this file; a name without"
        " `/` is searched for in PATH.\n"
        "f.yaml:6: there is no file or folder `data/`. Paths are relative to this file."
    )


@given(st.text(alphabet="./ab", min_size=1))
def test_a_linked_file_stays_below_the_working_directory(file: str) -> None:
    name = name_in_working_directory(file)

    assert not name.startswith("/")
    assert ".." not in name.split("/")


@pytest.mark.parametrize(
    ("setting", "line", "missing"),
    [
        ("parameters: {model: gone.onnx}", 7, "gone.onnx"),
        ("matrix: {parameters: {model: [a.onnx, gone.onnx]}}", 7, "gone.onnx"),
    ],
)
def test_models_must_exist(setting: str, line: int, missing: str) -> None:
    text = f"{HEAD}workload: onnx-inference\nenvironment: openvino\n{setting}\n"

    told = faults(text, existing=("a.onnx",))

    assert f"f.yaml:{line}: " in told
    assert missing in told
    assert "a.onnx`" not in told.replace(missing, "")


@pytest.mark.parametrize("environment", ["{python: gone}", "{conda: gone}", "{python: ~/gone}"])
@pytest.mark.parametrize("workload", ["module:function", "gemm"])
def test_only_an_environment_that_is_there_is_asked_for_its_framework(
    environment: str, workload: str
) -> None:
    text = f"{HEAD}workload: {workload}\nenvironment: {environment}\n"

    assert "does not name its framework" in faults(text)
    told = faults(text, missing="there is no {}.")
    assert told.startswith("f.yaml:6: there is no ")
    assert "gone. Create it." in told
    assert "framework" not in told
