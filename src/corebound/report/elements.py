"""What sections of several pages are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from corebound.analysis.wording import Flag, Text, count
from corebound.errors import Fault
from corebound.report.charts.axis import Axis, plain_tick


class Head(Struct, frozen=True, kw_only=True):
    """What every page has about it.

    Attributes:
        title, description: Of the document.
        root: Relative path to the site's top, empty or ending in a slash.
        here: What the way from the top to this page calls it.
        made: When and by what the page was made.
        above: (text, path from the site's top) of what that way leads through.
    """

    title: str
    description: str
    root: str
    here: str
    made: str
    above: tuple[tuple[str, str], ...] = (("Scenarios", "index.html"),)

    @property
    def crumbs(self) -> tuple[tuple[str, str], ...]:
        """(text, address) from the top; the last is this page, address empty."""
        return (*((text, f"{self.root}{path}") for text, path in self.above), (self.here, ""))


class Tick(Struct, frozen=True, kw_only=True):
    """A label at a place in per cent; `minor` ones go where there is no room."""

    at: float
    text: str
    minor: bool = False


class Hero(Struct, frozen=True, kw_only=True):
    """The top of a page: what was asked, the verdict, what it rests on, what to mind."""

    title: str
    question: str
    context: str
    verdict: Text
    support: Text
    flags: tuple[Flag, ...]


def levels_of(up: Axis, text: Callable[[float], str] = plain_tick) -> tuple[Tick, ...]:
    """Of an axis that goes upwards: places from the top."""
    return tuple(Tick(at=round((1 - up.share(at)) * 100, 2), text=text(at)) for at in up.ticks)


def along(across: Axis, text: Callable[[float], str] = plain_tick) -> tuple[Tick, ...]:
    """Of an axis that goes to the right: places from the left."""
    return tuple(Tick(at=round(across.share(at) * 100, 2), text=text(at)) for at in across.ticks)


def damaged(faults: Sequence[Fault]) -> Flag | None:
    """How many records were passed over, and where the first of them is.

    >>> damaged([Fault(file="records/host/r1.jsonl", line=20, what="…", mend="…")])
    ... # doctest: +ELLIPSIS
    Flag(..., title='1 record damaged', detail='passed over: r1.jsonl, line 20', link='')
    """
    if not faults:
        return None
    first = faults[0]
    line = "" if first.line is None else f", line {first.line}"
    # Else it is whole, but of a scenario that this version cannot read.
    is_damage = all(one.file.endswith(".jsonl") for one in faults)
    more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
    return Flag(
        tone="bad",
        sign="!",
        title=f"{count(len(faults), 'record')} {'damaged' if is_damage else 'could not be read'}",
        detail=f"passed over: {Path(first.file).name}{line}{more}",
    )


def narrowed_words(only: Sequence[str]) -> str:
    """What every page says then, for a reader may land on any; empty where all is in.

    Args:
        only: Names, or patterns of them, as they were asked for.

    >>> narrowed_words(["io.*", "resnet50"])
    'Only of io.* and resnet50, as --only asked'
    """
    return f"Only of {' and '.join(only)}, as --only asked" if only else ""


def turns(kinds: Iterable[Hashable]) -> list[int]:
    """For each in order its number among those of its kind: sorted by that, kinds alternate.

    >>> turns("aab")
    [1, 2, 1]
    """
    seen: Counter[Hashable] = Counter()
    found = []
    for kind in kinds:
        seen[kind] += 1
        found.append(seen[kind])
    return found
