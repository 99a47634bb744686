"""What asv's benchmarks.json says of benchmarks, and what their names alone do."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

# What asv's own kinds of benchmark are measured in, by the start of their names: for trees
# without benchmarks.json. Source: asv's documentation, "Benchmark types and attributes".
_UNITS = (("time", "seconds"), ("mem", "bytes"), ("peakmem", "bytes"))
# A longer one is a sentence, in which anything may stand.
_LONGEST_UNIT = 100
# A word for a time, and what is done in one: `particles / second`, `rows per s`, `it s⁻¹`.
_TIME = r"(?:[nmuµ]s|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?)"
_RATE = re.compile(rf"(.*?\S)(?:\s*/\s*|\s+per\s+){_TIME}|(.*?\S)\s+s⁻¹", re.IGNORECASE)
# `FLOPS` are a rate, `FLOPs` are not; how much faster something is has no time in it.
_OF_THEMSELVES = re.compile(r"[kMGTPE]?FLOPS|[Ss]peed-?up")
# A time in a time is a share.
_TIMES = re.compile(_TIME, re.IGNORECASE)


class Known(Struct, frozen=True, kw_only=True):
    """What benchmarks.json says of a benchmark.

    Attributes:
        title: For the eye.
        unit: In asv's words, such as `seconds`.
        params: Names of its parameters.
        code: Its source, where that is told.
    """

    title: str
    unit: str
    params: tuple[str, ...]
    code: str | None = None


def known(told: Any) -> dict[str, Known]:
    """What benchmarks.json says; entries that say nothing are passed over."""
    entries = told.items() if isinstance(told, dict) else ()
    return {
        name: Known(
            title=str(entry.get("pretty_name") or name),
            unit=str(entry.get("unit") or unit_of(name)),
            params=tuple(map(str, names)) if isinstance(names, list) else (),
            code=code if isinstance(code, str) and code.strip() else None,
        )
        for name, entry in entries
        if isinstance(entry, dict)
        for names, code in ((entry.get("param_names"), entry.get("code")),)
    }


def more_is_better(unit: str) -> bool:
    """Whether a unit, in words, is a rate: so much in a time.

    >>> more_is_better("particles / second"), more_is_better("seconds"), more_is_better("ms per op")
    (True, False, False)
    """
    unit = unit.strip()
    if len(unit) > _LONGEST_UNIT:
        return False
    if _OF_THEMSELVES.fullmatch(unit):
        return True
    found = _RATE.fullmatch(unit)
    return found is not None and not _TIMES.fullmatch(found.group(1) or found.group(2))


def unit_of(benchmark: str) -> str:
    """The unit asv gives a benchmark of such a name that names none itself.

    >>> unit_of("suite.Trees.time_insert"), unit_of("suite.track_size")
    ('seconds', 'unit')
    """
    own = benchmark.rsplit(".", 1)[-1].lower()
    return next((unit for start, unit in _UNITS if own.startswith(start)), "unit")
