"""A workload's module as far as it is known before anything is launched."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct


class Module(Struct, frozen=True, kw_only=True):
    """Where the worker of a cell will find a module, and what is in it.

    Attributes:
        source: Its text; None where it is compiled, or is not there. Where `missing` is
            a part of a package, the text of the packages that hold it.
        missing: The part of its dotted name that was not found; None: all were.
        is_certain: Whether what was not found is not there; False where the environment
            has not been made, for the module may be in one of its packages.
        beside: Modules beside the scenario file, one of which may be meant.
    """

    source: bytes | None
    missing: str | None = None
    is_certain: bool = True
    beside: tuple[str, ...] = ()


# From a module's dotted name and an environment's to the module; None: it cannot be told.
Finder = Callable[[str, str], Module | None]
