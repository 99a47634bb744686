"""What `--json` prints."""

from __future__ import annotations

import msgspec


def indented(document: object) -> str:
    """A document as JSON that people can read, too."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode()
