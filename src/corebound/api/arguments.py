"""Checks the arguments of the Python API: a wrong one is an `InputError`, not an error inside."""

from __future__ import annotations

import functools
import inspect
import math
import os
import typing
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar

import pydantic

from corebound.errors import InputError, user_error
from corebound.text import one_line

P = ParamSpec("P")
T = TypeVar("T")


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """A function that checks its arguments by their annotations before it runs.

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
            SimpleNamespace(__annotations__=annotations), function.__globals__
        )
        config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        return {name: pydantic.TypeAdapter(hint, config=config) for name, hint in hints.items()}

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        for name, value in _passed(signature.bind(*args, **kwargs), signature):
            if name in adapters():
                _check(f"{function.__qualname__}({name}=…)", value, adapters()[name])
        try:
            return function(*args, **kwargs)
        except OSError as error:
            if (explained := user_error(error)) is not None:
                raise explained from error
            raise

    return call


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
