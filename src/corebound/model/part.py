"""What every part of a scenario's model is built on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)


class Part(BaseModel):
    """A part of a scenario: frozen, and a fault where a key is not known."""

    # Many commands read no scenario: what checks one is built when the first is read.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Ordered(Part):
    """A part whose keys keep the order of the file: it names and orders the cells."""

    _written: tuple[str, ...] = PrivateAttr(())

    @property
    def written(self) -> tuple[str, ...]:
        """The keys that were written, in the order of the file."""
        return self._written

    @model_validator(mode="wrap")
    @classmethod
    def _remember(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made: Self = handler(data)
        # What is made has its fields in the order of the class: only `data` has the file's.
        if isinstance(data, Mapping):
            made._written = tuple(data)
        return made

    @model_serializer(mode="wrap")
    def _in_order(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        plain: dict[str, Any] = handler(self)
        return {key: plain[key] for key in (*self._written, *plain) if key in plain}


def has_keys(value: Any) -> str:
    """Which branch a value is of: an empty mapping is of none, and is said to be no such value."""
    return "keys" if isinstance(value, Part) or (isinstance(value, Mapping) and value) else "plain"
