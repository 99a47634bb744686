"""The arguments of the Python API: wrong ones are an `InputError`, and advice names them."""

import functools
import inspect
import math
import os
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from types import SimpleNamespace
from typing import Annotated, Any, ParamSpec, TypeAlias, TypeVar

import pydantic

from corebound.errors import CoreboundError, Fault, InputError, ScenarioFaults, user_error
from corebound.text import one_line

# An option of the command line alone, with its value in backticks, or in a command.
_OPTION = re.compile(
    r"`--(?P<quoted>[a-z-]+)(?: (?P<value>[^`]+))?`|(?<![\w`-])--(?P<bare>[a-z-]+)"
)
_COMMAND = re.compile(
    r"`corebound (?P<name>[a-z]+)(?P<files>(?: [^-` ][^` ]*)*) --(?P<flag>[a-z-]+)`"
)
P = ParamSpec("P")
T = TypeVar("T")
# A time limit in seconds.
Budget: TypeAlias = Annotated[float, pydantic.Field(gt=0)]


def checked(function: Callable[P, T], *, name: str | None = None) -> Callable[P, T]:
    """A function that checks its arguments by their annotations before it runs.

    Errors and progress name its arguments where the command line would name options.

    Args:
        function: A function of the API.
        name: Its name in errors; by default its own.

    Raises (when it is called):
        InputError: An argument has a wrong type, is no finite number, or contains a NUL character;
            or a path is invalid or cannot be read.
        TypeError: Arguments are missing, or unknown, as with any function of Python.
    """
    signature = inspect.signature(function)

    @functools.cache
    def adapters() -> dict[str, pydantic.TypeAdapter[Any]]:
        # The type of what is returned may be imported only for type checkers.
        annotations = {
            name: parameter.annotation
            for name, parameter in signature.parameters.items()
            if parameter.annotation is not parameter.empty
        }
        hints = typing.get_type_hints(
            SimpleNamespace(__annotations__=annotations), function.__globals__, include_extras=True
        )
        config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        return {name: pydantic.TypeAdapter(hint, config=config) for name, hint in hints.items()}

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True  # of pytest
        try:
            for argument, value in _passed(signature.bind(*args, **kwargs), signature):
                if argument in adapters():
                    where = f"{name or function.__qualname__}({argument}=…)"
                    _check(where, value, adapters()[argument])
            if callable(notify := kwargs.get("notify")):
                kwargs["notify"] = lambda line: notify(in_python(line, signature))
            return function(*args, **kwargs)
        except CoreboundError as error:
            error.what, error.where, error.fix = (
                in_python(text, signature) for text in (error.what, error.where, error.fix)
            )
            error.args = (f"{error.where}: {error.what}\n  {error.fix}",)
            if isinstance(error, ScenarioFaults):
                error.faults = tuple(
                    Fault(**asdict(fault) | {"fix": in_python(fault.fix, signature)})
                    for fault in error.faults
                )
            # The user can fix it without the frames of corebound.
            raise error.with_traceback(None) from None
        except OSError as error:
            if (explained := user_error(error)) is not None:
                raise explained from error
            raise

    return call


def in_python(text: str, signature: inspect.Signature) -> str:
    """A text with the arguments of a function in place of the options of its command.

    Options that the function does not have stay, and so do commands with arguments of their own.

    >>> def run(*files: str, only: "Sequence[str]" = (), budget_s: float = 1, resume: bool = False):
    ...     pass
    >>> of = inspect.signature(run)
    >>> in_python("Use a larger --budget, or `--only a=1`.", of)
    'Use a larger `budget_s=`, or `only=["a=1"]`.'
    >>> in_python("Use --quiet, or continue with `corebound run --resume`.", of)
    'Use --quiet, or continue with `corebound.run(resume=True)`.'
    """

    def argument(option: str, value: str | None) -> str | None:
        names = (f"{option.replace('-', '_')}{unit}" for unit in ("", "_s", "_ms"))
        parameter = next(filter(None, map(signature.parameters.get, names)), None)
        if parameter is None:
            # The folder of results is named when they are loaded.
            return "corebound.load(…)" if option == "records" else None
        if isinstance(parameter.default, bool):
            return f"{parameter.name}=True"
        if value is None or parameter.name.endswith(("_s", "_ms")):
            return f"{parameter.name}="
        quoted, kind = f'"{value}"', str(parameter.annotation)
        return f"{parameter.name}={f'[{quoted}]' if 'Sequence[' in kind else quoted}"

    def option(found: re.Match[str]) -> str:
        written = argument(found["quoted"] or found["bare"], found["value"])
        return found[0] if written is None else f"`{written}`"

    def command(found: re.Match[str]) -> str:
        flag = argument(found["flag"], None)
        if flag is None:
            return found[0]
        return f"`corebound.{found['name']}({', '.join([*found['files'].split(), flag])})`"

    return _OPTION.sub(option, _COMMAND.sub(command, text))


def _passed(
    bound: inspect.BoundArguments, signature: inspect.Signature
) -> Iterator[tuple[str, object]]:
    """Each argument with the name of its parameter; those of `*args` one by one."""
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            yield from ((name, each) for each in value)
        else:
            yield name, value


def _check(where: str, value: object, adapter: pydantic.TypeAdapter[Any]) -> None:
    unusable = _unusable(value)
    try:
        adapter.validate_python(value)
    except pydantic.ValidationError as error:
        unusable = error.errors(include_url=False)[0]["msg"]
    if unusable is not None:
        raise InputError(
            what=f"{one_line(repr(value))[:80]}: {unusable}.",
            where=where,
            fix="`help()` of this function lists its arguments.",
        )


def _unusable(value: object) -> str | None:
    """Why no argument can have this value; None if it can."""
    match value:
        case float() if not math.isfinite(value):
            return "Input should be a finite number"
        case str() | os.PathLike() if "\0" in os.fspath(value):
            return "Input should be without NUL characters"
        case Mapping():
            return next(filter(None, map(_unusable, [*value, *value.values()])), None)
        case tuple() | list():
            return next(filter(None, map(_unusable, value)), None)
    return None
