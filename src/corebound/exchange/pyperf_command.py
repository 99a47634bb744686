"""The command that measures a benchmark of pyperf again, as far as its file tells.

Source: pyperf 2.10, `_timeit.py` and `_command.py`: what they note of a benchmark; pyperformance
1.14, `run.py`. Of a function that a script hands to pyperf the file does not name the script.
"""

from __future__ import annotations

import ast
import io
import shlex
import tokenize
from collections.abc import Mapping
from typing import Any

_PYPERF = ("python", "-m", "pyperf")
# What corebound's own export writes of a cell.
OWN = "corebound_command"
# Nobody copies more.
_LONGEST = 2_000


def command_of(about: Mapping[str, Any]) -> tuple[str, ...]:
    """The command as words; empty where the file does not tell enough.

    Args:
        about: A benchmark's metadata.
    """
    own = _words(about.get(OWN))
    # A file of anyone's may say so: nothing but a measurement is taken for one.
    if own[:2] == ("corebound", "run"):
        return own
    if "timeit_stmt" in about:
        return _timeit(about)
    if "command" in about:
        measured = _words(about["command"])
        return (*_PYPERF, "command", *_named(about, "command"), "--", *measured) if measured else ()
    if "performance_version" in about:
        named = _safe(str(about.get("name", "")))
        return ("pyperformance", "run", "--benchmarks", named) if named else ()
    return ()


def _timeit(about: Mapping[str, Any]) -> tuple[str, ...]:
    told = [_statements(about.get(f"timeit_{name}")) for name in ("setup", "teardown", "stmt")]
    if any(one is None for one in told):
        return ()
    setups, teardowns, statements = (one or () for one in told)
    duplicate = _count(about.get("timeit_duplicate"))
    # pyperf multiplies the one by the other.
    inner = _count(about.get("inner_loops")) // (duplicate or 1)
    words = [*_PYPERF, "timeit", *_named(about, "timeit")]
    words += [word for one in setups for word in ("--setup", one)]
    words += [word for one in teardowns for word in ("--teardown", one)]
    words += ["--inner-loops", str(inner)] if inner > 1 else []
    words += ["--duplicate", str(duplicate)] if duplicate > 1 else []
    return (*words, "--", *statements)


def _named(about: Mapping[str, Any], usual: str) -> tuple[str, ...]:
    name = _safe(str(about.get("name", usual)))
    return ("--name", name) if name and name != usual else ()


def _statements(told: object) -> tuple[str, ...] | None:
    """Statements of which pyperf notes Python's own spelling, one after another.

    Returns:
        None where it is something else.
    """
    if told is None:
        return ()
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(str(told)).readline))
        strings = [ast.literal_eval(one.string) for one in tokens if one.type == tokenize.STRING]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return None
    between = {tokenize.STRING, tokenize.NEWLINE, tokenize.ENDMARKER}
    whole = all(one.type in between for one in tokens) and all(isinstance(s, str) for s in strings)
    return tuple(strings) if whole and all(map(_safe, strings)) else None


def _count(told: object) -> int:
    return told if isinstance(told, int) and told > 0 else 0


def _words(told: object) -> tuple[str, ...]:
    """Words as the shell has them; none where they are no text, or a quote stays open."""
    if not isinstance(told, str):
        return ()
    try:
        words = tuple(shlex.split(told))
    except ValueError:
        return ()
    return words if all(_safe(word) for word in words if word) else ()


def _safe(text: str) -> str:
    """The text; empty where a terminal or a page could not show it whole and as it is."""
    shown = len(text) <= _LONGEST and all(one.isprintable() or one == "\n" for one in text)
    return text if shown else ""
