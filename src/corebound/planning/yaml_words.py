"""What PyYAML says of broken syntax, in words that tell how to mend it."""

from __future__ import annotations

import yaml

from corebound.planning.tree import printable

# A piece of PyYAML's own words, then ours; and whether the place to show is
# where the construct began (its context) or where the parser gave up.
_WORDS = (
    (
        "found character '\\t' that cannot start any token",
        "a tab stands where YAML allows only spaces.",
        "Indent with spaces.",
        False,
    ),
    (
        "while parsing a flow sequence",
        "a `[` that opens here is not closed properly.",
        "Close it with `]`, and put commas between the values.",
        True,
    ),
    (
        "while parsing a flow mapping",
        "a `{` that opens here is not closed properly.",
        "Close it with `}`, and put commas between the entries.",
        True,
    ),
    (
        "expected alphabetic or numeric character",
        "a `*` or `&` here begins the name of no anchor.",
        "Put the value in quotes.",
        False,
    ),
    (
        "but found ']'",
        "a `]` closes nothing here.",
        "Remove it, or open a list with `[`.",
        False,
    ),
    (
        "but found '}'",
        "a `}` closes nothing here.",
        "Remove it, or open a mapping with `{`.",
        False,
    ),
    (
        "found character",
        "a value here begins with a character that YAML keeps for itself.",
        "Put the value in quotes.",
        False,
    ),
    (
        "mapping values are not allowed here",
        "a `:` stands where no key can be.",
        "Check the indentation, and put text that holds `: ` in quotes.",
        False,
    ),
    (
        "could not find expected ':'",
        "this line has no `:` after its key.",
        "Write `key: value`.",
        True,
    ),
    (
        "while scanning a quoted scalar",
        "a quote that opens here is not closed properly.",
        "Close it, and double a backslash that is meant literally.",
        True,
    ),
    (
        "while scanning a double-quoted scalar",
        "a backslash in double quotes begins no escape here.",
        "Double it, or use single quotes.",
        False,
    ),
    (
        "expected <block end>",
        "this line does not fit the indentation above it.",
        "Indent all keys of one mapping, and all items of one list, alike.",
        False,
    ),
    (
        "expected '<document start>'",
        "this line goes on after the document has ended.",
        "Indent all keys alike, and keep one mapping in the file.",
        False,
    ),
)


def syntax_words(error: yaml.MarkedYAMLError) -> tuple[int, str, str]:
    """The line of a syntax error, what it is and how to mend it."""
    theirs = f"{error.context or ''} {error.problem or ''}"
    for piece, what, mend, at_context in _WORDS:
        if piece in theirs:
            mark = (error.context_mark if at_context else None) or error.problem_mark
            return _line(mark), what, mend
    words = printable(error.problem or "its syntax is broken", 120)
    return _line(error.problem_mark), f"this is not YAML: {words}.", "Mend the syntax here."


def _line(mark: yaml.Mark | None) -> int:
    return 1 if mark is None else int(mark.line) + 1
