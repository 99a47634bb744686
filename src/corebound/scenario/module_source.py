"""The source of a workload's module, looked up before anything is launched."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct


class Module(Struct, frozen=True, kw_only=True):
    """A module as the worker of a cell will import it.

    Attributes:
        source: The module's text; None if it is compiled or does not exist. If `missing` is
            part of a package, the text of the packages that contain it.
        missing: The part of the dotted name that was not found; None if all parts were found.
        is_certain: Whether a module that was not found certainly does not exist. False if the
            environment has not been made: the module may be in one of its packages.
        beside: Modules beside the scenario file, used to suggest a correction.
    """

    source: bytes | None
    missing: str | None = None
    is_certain: bool = True
    beside: tuple[str, ...] = ()


# Maps a module's dotted name and an environment's name to the module; None if unknown.
Finder = Callable[[str, str], Module | None]
