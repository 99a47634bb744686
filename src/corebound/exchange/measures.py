"""Understand the units of other tools: which are the same measure, and how they convert."""

import re
from functools import lru_cache
from typing import NamedTuple

_SECOND = r"(nano|micro|milli|[nuµμm])?s(?:ec(?:ond)?s?)?|(min|h)(?:ute|r|our)?s?"
_PER = r"\s*(?:/|\bper\b)\s*"
_PER_RUN = rf"(?:{_PER}(?:iter(?:ation)?|op(?:eration)?|call|run|loop))?"
_TIME = re.compile(rf"(?:{_SECOND}){_PER_RUN}", re.IGNORECASE)
_BYTES = re.compile(rf"(?:(kilo|mega|giga|[kmgtp])(i|bi)?)?(?:b|bytes?){_PER_RUN}", re.IGNORECASE)
# `Mb` is a number of bits; `mb` is what many write for bytes.
_BITS = re.compile(rf"(?:[A-Z]i?)?b{_PER_RUN}")
_RATE = re.compile(rf"(.*?\S)(?:{_PER}(?:{_SECOND})|\s+s⁻¹)", re.IGNORECASE)
# `FLOPS` is a rate, `FLOPs` is not; a speed-up contains no time.
_UNITLESS_RATES = re.compile(r"[kMGTPE]?FLOPS|[Ss]peed-?up")
_COUNT = re.compile(r"([kMGT]?)(op|iter|req|elem|item|row|call|event|flop)[a-z]*")
_TIMES_NS = {
    "": 1e9,
    "milli": 1e6,
    "m": 1e6,
    "micro": 1e3,
    "nano": 1.0,
    "n": 1.0,
    "min": 60e9,
    "h": 3600e9,
}
# Which of its values a tool reports, besides the unit: `median ms`, `ms (avg)`.
_STATISTIC = re.compile(r"[\s(\[,:]*\b(?:median|mean|avg|average)\b[\s)\],:]*", re.IGNORECASE)
# A longer unit is a sentence.
_LONGEST = 100


class Measure(NamedTuple):
    """What a unit measures: `ns`, `bytes`, `bytes/s`; or the unit itself, if it is not known.

    Attributes:
        name: As above.
        scale: How many of those one of the unit is.
        is_exact: Whether that is certain: `MB` may be 1024² bytes, and a median is not a mean.
    """

    name: str
    scale: float
    is_exact: bool


def more_is_better(unit: str) -> bool:
    """Whether a unit, in words, is a rate: an amount per time.

    >>> more_is_better("particles / second"), more_is_better("seconds"), more_is_better("ms per op")
    (True, False, False)
    """
    unit = unit.strip()
    if len(unit) > _LONGEST:
        return False
    rate = _RATE.fullmatch(unit)
    # A time per time is a share.
    is_rate = rate is not None and not _TIME.fullmatch(rate[1])
    return is_rate or _UNITLESS_RATES.fullmatch(unit) is not None


@lru_cache(maxsize=4096)
def measure_of(unit: str) -> Measure:
    """Understand a unit, in words.

    >>> tuple(measure_of("median ms")), tuple(measure_of("KiB")), tuple(measure_of("kops/sec"))
    (('ns', 1000000.0, False), ('bytes', 1024.0, True), ('op/s', 1000.0, True))
    """
    own = unit.strip()
    text = _STATISTIC.sub(" ", own).strip()
    known = _known(text) if len(text) <= _LONGEST else None
    if known is None:
        return Measure(own, 1.0, is_exact=True)
    return known._replace(is_exact=known.is_exact and text == own)


def _known(unit: str) -> Measure | None:
    if time := _TIME.fullmatch(unit):
        return Measure("ns", _time_ns(time[1], time[2]), is_exact=True)
    if (size := _BYTES.fullmatch(unit)) and not _BITS.fullmatch(unit):
        base = 1024.0 if size[2] else 1000.0
        return Measure("bytes", base ** _power(size[1]), is_exact=not size[1] or bool(size[2]))
    if not (rate := _RATE.fullmatch(unit)):
        return None
    seconds = _time_ns(rate[2], rate[3]) / 1e9
    if (amount := _known(rate[1])) and amount.name == "bytes":
        return Measure("bytes/s", amount.scale / seconds, is_exact=amount.is_exact)
    if count := _COUNT.fullmatch(rate[1]):
        return Measure(f"{count[2]}/s", 1000.0 ** _power(count[1]) / seconds, is_exact=True)
    return None


def _time_ns(prefix: str | None, minute: str | None) -> float:
    # The rest are three letters for micro.
    return _TIMES_NS.get((prefix or minute or "").lower(), 1e3)


def _power(prefix: str | None) -> int:
    return " kmgtp".index(prefix[0].lower()) if prefix else 0
