"""What could disturb a measurement on a host, looked for before it began."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

# `unavailable`: the host does not show it, which is neither zero nor fine.
State = Literal["ok", "warning", "unavailable"]
Group = Literal["processor", "CPUs", "load", "memory", "kernel", "tools", "environments"]


class HostCheck(Struct, frozen=True, kw_only=True):
    """What one check saw.

    Attributes:
        check: Its name, such as `swappiness`.
        value: What was seen, in words; where unavailable, what is missing.
        why: What it does to a measurement.
        mend: The command that mends a warning, or what to do where there is none.
        undo: The command that brings the value seen back; None where there is none.
    """

    check: str
    group: Group
    state: State
    value: str
    why: str
    mend: str | None
    undo: str | None
