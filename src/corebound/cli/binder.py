"""Makes the options of a command from the fields of its request (ADR 33), and prints its result."""

import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from types import GenericAlias
from typing import Any

import typer
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from corebound.cli.options import Json, Output, Quiet
from corebound.workflow.options import Argument, Option

_UNIT = re.compile(r"_m?s$")


class _Declared(Struct, frozen=True, kw_only=True):
    """An option of a command, the type of its value, and its default; `...` if it has none."""

    name: str
    kind: Any
    option: Option
    default: Any

    @property
    def parameter(self) -> inspect.Parameter:
        """The parameter that typer reads: its value is what the user types."""
        kind, default = self.kind, self.default
        if (item := self._item) is not None:
            kind, default = GenericAlias(list, (item,)), ... if default is ... else None
        elif self.option.parse is not None:
            kind, default = str, self.option.typed
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=self._typer_option(default),
            annotation=kind | None if default is None else kind,
        )

    def value(self, typed: Any) -> Any:
        """The value that the user typed, or the default."""
        if typed is None or typed == []:
            return self.default
        if self.option.parse is not None:
            return self.option.parse(typed)
        return tuple(typed) if self._item is not None else typed

    @property
    def _item(self) -> Any:
        """The type of each value if the user may type several; None if not."""
        if typing.get_origin(self.kind) is Mapping:
            return str
        is_list = typing.get_origin(self.kind) is tuple and self.option.parse is None
        return typing.get_args(self.kind)[0] if is_list else None

    def _typer_option(self, default: Any) -> Any:
        option = self.option
        about: dict[str, Any] = {
            name: getattr(option, name) for name in ("help", "metavar", "min", "max", "envvar")
        }
        if isinstance(option, Argument):
            return typer.Argument(default, **about)
        name = option.name or f"--{_UNIT.sub('', self.name).strip('_').replace('_', '-')}"
        return typer.Option(default, *filter(None, (name, option.short)), **about)


def bound(function: Callable[..., Output | None], *, begin_s: float) -> Callable[..., None]:
    """The function that typer makes a command of, for a command as it is written.

    A command has a request, of which each option is one on the command line, and parameters of its
    own, which only the terminal has. A parameter `console` is where progress is shown, unless the
    user types `--quiet`; one that returns an `Output` has the option `--json`,
    which `--format json` means too.

    Args:
        begin_s: When it began, by the monotonic clock, for requests that have a budget.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    own = inspect.signature(function).parameters
    requests = {name: hints[name] for name in own if _is_request(hints[name])}
    declared = {
        option.name: option
        for parameter in own.values()
        for option in _options_for(parameter, hints[parameter.name])
    }
    if hints.get("return") is Output:
        declared.setdefault("as_json", _declared("as_json", Json, default=False))

    def call(**typed: Any) -> None:
        values = {name: declared[name].value(value) for name, value in typed.items()}
        as_json = values.get("as_json", False) or values.get("form") == "json"
        if "console" in own:
            values["console"] = hints["console"](stderr=True, quiet=values.pop("quiet"))
        for name, request in requests.items():
            fields_of = {option.name: values.pop(option.name) for option in _options_of(request)}
            if "begin_s" in request.__struct_fields__:
                fields_of["begin_s"] = begin_s
            values[name] = request(**fields_of)
        output = function(**{name: value for name, value in values.items() if name in own})
        if output is not None:
            output.print(as_json=as_json)
            raise typer.Exit(output.exit_code)

    parameters = [option.parameter for option in declared.values()]
    call.__dict__.update(__signature__=inspect.Signature(parameters))
    return call


def _is_request(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct)


def _options_for(parameter: inspect.Parameter, hint: Any) -> Iterator[_Declared]:
    """The options that a parameter of a command takes its value from."""
    if _is_request(hint):
        yield from _options_of(hint)
    elif parameter.name == "console":
        yield _declared("quiet", Quiet, default=False)
    else:
        required = parameter.default is parameter.empty
        yield _declared(parameter.name, hint, ... if required else parameter.default)


def _options_of(request: type[Struct]) -> Iterator[_Declared]:
    """The options of a request, in the order of the help."""
    hints = typing.get_type_hints(request, include_extras=True)
    defaults = {
        field.name: field.default_factory()
        if field.default_factory is not NODEFAULT
        else ...
        if field.default is NODEFAULT
        else field.default
        for field in fields(request)
    }
    for name in getattr(request, "options", defaults):
        yield _declared(name, hints[name], defaults[name])


def _declared(name: str, hint: Any, default: Any) -> _Declared:
    kind, option = typing.get_args(hint)
    return _Declared(name=name, kind=kind, option=option, default=default)
