"""The format of all `--json` output."""

from __future__ import annotations

import msgspec

from corebound.text import json_text


def indented(document: object) -> str:
    """Serialise a document as indented JSON."""
    return json_text(msgspec.json.format(msgspec.json.encode(document), indent=1).decode())
