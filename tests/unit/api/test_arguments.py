"""A wrong argument of the Python API is an `InputError` that names the argument."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pytest

import corebound
from corebound.api.arguments import Budget, checked
from corebound.errors import InputError


@checked
def example(
    *files: str | PathLike[str],
    records: str | PathLike[str] = "r",
    only: Sequence[str] = (),
    budget_s: Budget | None = None,
    settings: Mapping[str, object] | None = None,
) -> tuple[object, ...]:
    """Return what it got; a file that is too long is an error of the system."""
    for file in files:
        Path(file).exists()
        Path(file).stat()
    return (files, records, only, budget_s, settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("records", 3),
        ("records", "a\0b"),
        ("records", Path("a\0b")),
        ("only", "threads=1"),
        ("only", ["a\0b"]),
        ("budget_s", "soon"),
        ("budget_s", float("nan")),
        ("budget_s", 0),
        ("budget_s", -1.0),
        ("settings", {"env": {"A": "\0"}}),
    ],
)
def test_a_wrong_argument_is_named(name: str, value: object) -> None:
    with pytest.raises(InputError) as caught:
        example(**{name: value})  # type: ignore[arg-type]

    assert name in caught.value.where


def test_a_name_that_the_system_refuses_is_an_input_error() -> None:
    with pytest.raises(InputError):
        example("x" * 5000)


@checked
def advising(*, resume: bool = False, notify: Callable[[str], object] | None = None) -> None:
    """Say what the command line would say, and fail like it."""
    del resume
    if notify is not None:
        notify("To continue: `corebound run --resume`.")
    raise InputError(what="a --budget is too small.", where="--resume", fix="Pass `--resume`.")


def test_errors_and_progress_name_arguments_instead_of_options() -> None:
    lines: list[str] = []

    with pytest.raises(InputError) as caught:
        advising(notify=lines.append)

    assert "resume=True" in caught.value.fix
    assert "resume=True" in caught.value.document["where"]
    assert "resume=True" in lines[0]
    assert "--resume" not in f"{lines} {caught.value}"
    assert "--budget" in str(caught.value)  # it has no such argument


def test_missing_and_unknown_arguments_are_type_errors_as_of_any_function() -> None:
    with pytest.raises(TypeError):
        example(recorsd="r")  # type: ignore[call-arg]


def test_arguments_are_passed_on_as_they_are() -> None:
    settings = {"threads": 1}

    result = example(records=Path("r"), settings=settings)

    assert result == ((), Path("r"), (), None, settings)
    assert result[-1] is settings


FUNCTIONS = [name for name in corebound.__all__ if inspect.isfunction(getattr(corebound, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_checks_each_of_its_arguments(name: str) -> None:
    function = getattr(corebound, name)
    parameters = inspect.signature(function).parameters.values()
    for wrong in parameters:
        positional: list[object] = []
        named: dict[str, object] = {}
        for parameter in parameters:
            # No annotation of the API allows bytes that are not UTF-8.
            value = b"\xff" if parameter is wrong else "x"
            if parameter.kind is parameter.VAR_POSITIONAL:
                functions = [len, len] if name == "measure" else []
                positional += [value] if parameter is wrong else functions
            elif parameter is wrong or parameter.default is parameter.empty:
                if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and not named:
                    positional.append(value)
                else:
                    named[parameter.name] = value
        with pytest.raises(InputError):
            function(*positional, **named)


def test_a_fleet_checks_its_arguments_too(tmp_path: Path) -> None:
    wrong: Any = 3

    with pytest.raises(InputError, match="Fleet"):
        corebound.Fleet(wrong)
    with pytest.raises(InputError, match="host"):
        corebound.Fleet(tmp_path / "fleet.yaml").forget_host(wrong)
