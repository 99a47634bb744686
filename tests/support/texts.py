"""The facts in a text: tests check these, so that its wording is free to change."""

import re


def in_order(text: str | None, *facts: str) -> bool:
    """Return whether a text contains all of these, one after the other, and `1` not as `21`."""
    found = [f"{r'(?<![0-9.])' if fact[0].isdigit() else ''}{re.escape(fact)}" for fact in facts]
    return re.search(".*".join(found), text or "", re.DOTALL) is not None


def numbers_in(text: str | None) -> list[float]:
    """Read all numbers of a text without their signs, in order."""
    found = re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", text or "")
    return [float(number.replace(",", "")) for number in found]
