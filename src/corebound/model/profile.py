"""Operator profiles: a launch's own, and those that were made elsewhere."""

from __future__ import annotations

from msgspec import Struct

from corebound.model.bounds import Count
from corebound.model.wire import Operator

# Of imported profiles, which are files of their own.
PROFILE_SCHEMA = 1


class OperatorProfile(Struct, frozen=True, kw_only=True):
    """Where an iteration's time goes; the fields are those of `wire.Profile`.

    A launch's profile has all of them; one made elsewhere has what its files tell.

    Attributes:
        iterations: None: where iterations begin is not told, and every figure is of
            all that was profiled instead of an iteration.
        step_ns, outside_ns: None: when the iterations began and ended is not told.
    """

    iterations: Count | None
    step_ns: Count | None
    outside_ns: Count | None
    operators: tuple[Operator, ...]
    phases: dict[str, Count]


class ImportedProfile(Struct, frozen=True, kw_only=True):
    """An operator profile that was made elsewhere.

    Attributes:
        schema: `PROFILE_SCHEMA` of the corebound that wrote it.
        name: As the user or its files call it.
        source: The profiler that made it, and the files it was read from, in words.
        device: The device that its files name; None where they name none.
        files: Names of the files it was read from, without their folders.
    """

    schema: int
    name: str
    source: str
    device: str | None
    files: tuple[str, ...]
    profile: OperatorProfile
