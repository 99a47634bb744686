"""What `--json` prints."""

from __future__ import annotations

import msgspec

from corebound.text import json_text


def indented(document: object) -> str:
    """A document as JSON that people can read, too."""
    return json_text(msgspec.json.format(msgspec.json.encode(document), indent=1).decode())
