"""Texts reviewed as a whole. COREBOUND_GOLDEN=write rewrites them; the diff is reviewed."""

import os

from support.paths import GOLDEN


def assert_golden(text: str, name: str) -> None:
    """The text is the reviewed one, character by character."""
    path = GOLDEN / name
    if os.environ.get("COREBOUND_GOLDEN") == "write":
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")
