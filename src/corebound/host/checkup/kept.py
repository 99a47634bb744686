"""What settings were before they were changed, as the state file keeps it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

_SCHEMA = 1
# Root writes there whatever the file says, so it may say nothing else.
_SETTABLE = re.compile(r"(?:proc/sys|proc/irq|sys)(?:/(?!\.\.?(?:/|$))[^/\0]+)+")


class Kept(Struct, frozen=True, kw_only=True):
    """One setting: its file below the root, what it was, and what it was set to last."""

    path: str
    prior: str
    value: str


def encode(kept: Sequence[Kept]) -> bytes:
    """Write the settings, in the order they were changed first."""
    document = {"schema": _SCHEMA, "settings": [asdict(one) for one in kept]}
    return json.dumps(document, indent=1).encode() + b"\n"


def decode(data: bytes) -> tuple[Kept, ...]:
    """Read them back.

    Raises:
        ValueError: the file is damaged, of a newer corebound, or names a file that
            is no setting.
    """
    document: Any = json.loads(data)
    settings = document.get("settings") if isinstance(document, dict) else None
    if not isinstance(settings, list) or document.get("schema") != _SCHEMA:
        raise ValueError(f"it holds no settings of schema {_SCHEMA}")
    return tuple(_kept(one) for one in settings)


def _kept(one: Any) -> Kept:
    fields = ("path", "prior", "value")
    if not isinstance(one, dict) or not all(isinstance(one.get(name), str) for name in fields):
        raise ValueError("a setting lacks its path, prior or value")
    if not _SETTABLE.fullmatch(one["path"]):
        raise ValueError(f"`{one['path'][:80]}` is no setting")
    return Kept(path=one["path"], prior=one["prior"], value=one["value"])
