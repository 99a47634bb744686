"""The output of `corebound bisect`: text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from corebound.analysis.serialize import interval_pair
from corebound.analysis.wording import NO_ESTIMATE
from corebound.cli.output.json import indented
from corebound.records.run_record import Commit
from corebound.stats.bisection import BisectionOutcome
from corebound.stats.intervals import is_usable
from corebound.text import one_line
from corebound.workflow.compare_commits import short


class BisectResult(Struct, frozen=True, kw_only=True):
    """The result of a bisection.

    Attributes:
        project: The name of the project under test.
        cell: The id of the cell.
        line: The searched commits, the good end first.
        ending: The result of the search; None if its time ran out.
        is_merge: Whether the commit that was found is a merge.
        noise: The noise floor of the cell's scenario, if it was calibrated, in a sentence.
        records: Files of records, in the order they were begun.
    """

    project: str
    cell: str
    line: tuple[Commit, ...]
    ending: BisectionOutcome | None
    is_merge: bool
    noise: tuple[str, ...]
    records: tuple[Path, ...]


def text(told: BisectResult) -> str:
    """Render the result as text, without a final newline."""
    return "\n".join((*_answer(told), *told.noise, f"Records: {', '.join(map(str, told.records))}"))


def _answer(told: BisectResult) -> Iterator[str]:
    ending = told.ending
    if ending is None:
        yield "The budget ran out. The same command goes on where it was."
        return
    good, bad = told.line[ending.good], told.line[ending.bad]
    if ending.outcome == "found":
        yield f"{_named(bad)}"
        yield f"{told.cell} takes {_size(ending)} of its time at the commit before."
    elif ending.outcome == "range":
        yield f"One of these {len(ending.suspects)} commits; the others could not be judged:"
        yield from (f"  {_named(told.line[place])}" for place in ending.suspects)
        yield f"{told.cell} takes {_size(ending)} of its time at {_named(good)}."
    elif ending.outcome == "no difference":
        yield f"No difference: at {short(bad)} {told.cell} takes {_size(ending)} of its time at"
        yield f"{short(good)}, which is within the margin. Nothing was searched."
    elif ending.outcome == "broken":
        yield f"{told.cell} could not be measured at {short(good)} or {short(bad)}, the ends."
        yield "The records, and what was said above, tell why."
    elif ending.suspects:
        yield f"Perhaps {_named(bad)}: the search ended there, but measured anew"
        yield f"{told.cell} takes {_size(ending)} of its time at {_named(good)}."
        yield "More launches may tell: --launches."
    else:
        yield f"Undecided: at {short(bad)} {told.cell} takes {_size(ending)} of its time at"
        yield f"{short(good)}, and that may be noise. More launches may tell: --launches."
    if told.is_merge and ending.outcome == "found":
        sha = short(bad)
        yield "It is a merge. Search what it brought:"
        yield f"  corebound bisect $(git merge-base {sha}^1 {sha}^2) {sha}^2 …"


def _size(ending: BisectionOutcome) -> str:
    bounds = ending.interval
    if ending.slowdown_ratio is None or bounds is None:
        return "an unknown share"
    if not is_usable(bounds.low, bounds.high):
        return f"{ending.slowdown_ratio:.3f}× ({NO_ESTIMATE})"
    return f"{ending.slowdown_ratio:.3f}× ({bounds.low:.3f}–{bounds.high:.3f}, 95 %)"


def _named(commit: Commit) -> str:
    return f"{short(commit)} {one_line(commit.subject)}"


def as_json(told: BisectResult) -> str:
    """Render the result as JSON."""
    ending = told.ending
    document = {
        "project": told.project,
        "cell": told.cell,
        "outcome": ending.outcome if ending else "out of time",
        "suspects": [told.line[place] for place in ending.suspects] if ending else [],
        "good": told.line[ending.good] if ending else told.line[0],
        "bad": told.line[ending.bad] if ending else told.line[-1],
        "slowdown_ratio": ending.slowdown_ratio if ending else None,
        "slowdown_interval": interval_pair(ending.interval) if ending else None,
        "is_merge": told.is_merge,
        "commits": len(told.line) - 1,
        "tests": ending.tests if ending else None,
        "noise": told.noise,
        "records": [str(file) for file in told.records],
    }
    return indented(document)
