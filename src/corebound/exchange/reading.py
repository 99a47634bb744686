"""Read text and JSON of other tools, and explain what is wrong with invalid ones."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

# How to repair a file that used to be complete.
DAMAGED = "Copy the file again, or delete it."
# Placeholders that version control leaves instead of a file, and how to get the file.
_PLACEHOLDERS = (
    (b"version https://git-lfs", "a pointer of Git LFS", "Fetch the files: `git lfs pull`."),
    (b"/annex/objects/", "a pointer of git-annex", "Fetch the files: `git annex get`."),
    (b"<<<<<<< ", "an unfinished merge", "Finish the merge, or check out one side."),
)

# Half of a surrogate pair, which no text can hold: as a JSON escape, where its other half may
# follow, and as bytes that Python's reader accepts.
_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")

# A longer text would fill a page.
_LONGEST_NAME = 200
# What C and C++ print for a number that JSON does not have; strings come first, to skip them. The
# last string may be incomplete.
_NO_NUMBER = re.compile(
    r'("[^"\\]*(?:\\.[^"\\]*)*"?)|[+-]?\b(?:nan|inf(?:inity)?)\b(?:\(\w*\))?',
    re.IGNORECASE | re.DOTALL,
)
# The rest of a number or an escape that ends too early.
_CUT = re.compile(r"\s*|\.|\.?\d*[eE][+-]?|\\?u?[0-9a-fA-F]{0,4}")
_DIGEST_LENGTH = 12
# How many characters around an error to show.
_EXCERPT = 20
# How to repair what a tool wrote itself.
_OWN_FAULT = (
    "The tool wrote this. Run it with LC_ALL=C if numbers have commas, or update it; or correct"
    " this place."
)

# Called with the number of files read and the total.
Progress = Callable[[int, int], None]


def no_progress(_done: int, _total: int) -> None:
    """Show no progress."""


_decoder = msgspec.json.Decoder()


class Unreadable(ValueError):
    """Content that a reader cannot read: what is wrong with it, and how to fix it."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what} {fix}")
        self.what = what
        self.fix = fix


class Unknown(Unreadable):
    """Content in an unknown format; a folder may contain such files."""


def clean(name: str) -> str:
    """Make a text from an outside file safe to store, to display in a terminal, and to read."""
    cut = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    # Escape sequences would control a terminal, and lone surrogates have no UTF-8 encoding.
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in cut)


def label(name: str) -> str:
    """A name that tells things apart: shortened or repaired texts still differ from each other."""
    cleaned = clean(name)
    if cleaned == name:
        return name
    return f"{cleaned} {digest_of(name)}"


def digest_of(name: str) -> str:
    """What tells a name apart from those that look like it."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"#{digest[:_DIGEST_LENGTH]}"


class InvalidJson(ValueError):
    """Text that is not JSON.

    Attributes:
        at: The index of the character that is wrong.
        near: What is around it, on one line.
        is_truncated: Whether the text is right so far, and only ends too early.
    """

    def __init__(self, reason: str, text: str, at: int, *, is_truncated: bool = False) -> None:
        super().__init__(reason)
        self.at = at
        self.near = clean(" ".join(text[max(0, at - _EXCERPT) : at + _EXCERPT].split()))
        self.is_truncated = is_truncated


def decode_json(text: str, at: int, decoder: json.JSONDecoder) -> tuple[Any, int, str]:
    """Decode the JSON value at an index, as tools write it: with `nan` and `-inf`.

    Returns:
        The value, the index after it, and the text, in which numbers may have been replaced.

    Raises:
        InvalidJson: There is none.
    """
    try:
        return *decoder.raw_decode(text, at), text
    except json.JSONDecodeError as error:
        found = _NO_NUMBER.match(text, error.pos)
        rest = text[error.pos :]
        if found is None or found[1] or found[0] == "NaN":
            is_truncated = (
                error.msg.startswith("Unterminated string")
                or _CUT.fullmatch(rest) is not None
                or any(each.startswith(rest) for each in ("true", "false", "null", "-Infinity"))
            )
            raise InvalidJson(error.msg, text, error.pos, is_truncated=is_truncated) from None
    except RecursionError:
        raise InvalidJson("nested too deeply", text, at) from None
    except ValueError as error:  # a number with thousands of digits
        raise InvalidJson(str(error), text, at) from None
    # All at once, because each attempt begins again. The length stays, and so do positions.
    repaired = _NO_NUMBER.sub(lambda each: each[1] or "NaN".ljust(len(each[0])), text[at:])
    return decode_json(text[:at] + repaired, at, decoder)


_json_decoder = json.JSONDecoder(strict=False)


def parse_json(data: bytes) -> Any:
    """Parse JSON as tools write it, with NaN and Infinity for missing numbers.

    Raises:
        Unreadable: The data is not JSON.
    """
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    for start, what, fix in _PLACEHOLDERS:
        if data.startswith(start):
            raise Unreadable(f"it is {what}.", fix)
    text = data.decode(json.detect_encoding(data), "replace")
    begin = len(text) - len(text.lstrip())
    if begin == len(text):
        raise Unreadable("the file is empty.", DAMAGED)
    try:
        content, end, _ = decode_json(text, begin, _json_decoder)
        if rest := text[end:].strip():
            raise InvalidJson("text after the end", text, text.index(rest, end))  # noqa: TRY301
    except InvalidJson as error:
        if text[begin].isalpha():
            raise Unreadable("not JSON.", "Write JSON with the tool, and name that file.") from None
        line, before = text.count("\n", 0, error.at) + 1, text.rfind("\n", 0, error.at)
        where = f"line {line} column {error.at - before} (char {error.at}), near `{error.near}`"
        what, fix = ("truncated", DAMAGED) if error.is_truncated else ("invalid", _OWN_FAULT)
        raise Unreadable(f"{what} JSON: {error}: {where}.", fix) from None
    return _without_surrogates(content) if _LONE_SURROGATE.search(data) else content


@contextmanager
def reporting_damage() -> Iterator[None]:
    """Report errors of reading a document that has another shape than expected.

    Raises:
        Unreadable: The block raised an error of a missing or invalid value.
    """
    try:
        yield
    except Unreadable:
        raise
    except KeyError as error:
        raise Unreadable(f"damaged: no `{clean(str(error.args[0]))}`.", DAMAGED) from None
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        raise Unreadable(f"damaged: {clean(repr(error))}.", DAMAGED) from None


def _without_surrogates(value: Any) -> Any:
    """Remove lone surrogates, which Python reads but cannot encode."""
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(each) for key, each in value.items()}
    if isinstance(value, list):
        return [*map(_without_surrogates, value)]
    return value.encode(errors="replace").decode() if isinstance(value, str) else value
