"""The words of messages about scenarios: what is expected, lists and suggestions."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from msgspec import Struct

from corebound.text import one_line


def printable(text: str, most: int = 40) -> str:
    """Shorten text for a message: one line, no invisible characters, limited length."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def closest(text: str, choices: Sequence[str], *, similarity: float = 0.6) -> str | None:
    """The known word that is closest to `text`, if its similarity (0 to 1) is high enough."""
    return next(iter(get_close_matches(text, choices, n=1, cutoff=similarity)), None)


def join_words(items: Sequence[str], last: str = "or") -> str:
    """Join items into a list for a sentence.

    >>> join_words(["a", "b", "c"])
    'a, b or c'
    """
    return f" {last} ".join(filter(None, (", ".join(items[:-1]), items[-1])))


class Expected(Struct, frozen=True):
    """Describes the valid values of a key in an error message.

    `noun` completes "is not …"; `choices` are the allowed words, if there are few. `item` describes
    the items of a list, unless they are like the list or text.
    """

    noun: str
    fix: str
    choices: tuple[str, ...] = ()
    item: Expected | None = None


def one_of(noun: str, choices: tuple[str, ...], more: str = "") -> Expected:
    """Expect one of a few words, or something else that `more` describes."""
    return Expected(
        noun, f"Write {join_words((*choices, *filter(None, [more])))}.", choices=choices
    )


def whole_number(noun: str, low: int, high: int) -> Expected:
    """Expect a whole number from `low` to `high`."""
    return Expected(noun, f"Write a whole number from {low:,} to {high:,}.")


BOOLEAN = Expected("true or false", "Write true or false.")
COUNT = whole_number("a count", 1, 65_536)
