"""`corebound bisect`: find the commit that made a cell slower, by a search that tolerates noise."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from corebound.analysis.wording import precise_speed
from corebound.cli.options import Output, typed_command
from corebound.cli.output.console import Console
from corebound.cli.output.progress import TerminalReporter
from corebound.records.run_record import Commit
from corebound.stats.bisection import BisectionOutcome
from corebound.text import one_line
from corebound.workflow.bisect import BisectRequest, BisectResult, bisect_commits
from corebound.workflow.comparison_sides import short_name


def bisect(request: BisectRequest, console: Console) -> Output:
    """Find the commit that changed the time or memory of a cell.

    The search compares commits between GOOD and BAD, and tolerates noise.

    Examples:
        corebound bisect v1.2 main --scenario hashing.yaml
        corebound bisect v1.2 main --scenario hashing.yaml --cell threads=1
        corebound bisect v1.2 main --scenario hashing.yaml --metric memory
    """
    reporter = TerminalReporter(console, resume_command=typed_command())
    result = bisect_commits(request, reporter)
    return Output(result, lambda: typer.echo(_text(result)), result.exit_code)


def _text(result: BisectResult) -> str:
    records = f"Records: {', '.join(map(str, result.records))}"
    return "\n".join((*_answer(result), *result.noise, records))


def _answer(result: BisectResult) -> Iterator[str]:
    ending = result.ending
    good, bad = result.commits[ending.good], result.commits[ending.bad]
    size = _size(ending, result.measured.words)
    if ending.outcome == "out of time":
        if ending.suspects:
            yield f"The ends differ: {result.measured.id} is {size} at the bad end."
            yield f"It changed in one of {len(ending.suspects)} commits after {_commit_name(good)}"
            yield f"up to {_commit_name(bad)}."
        elif ending.slowdown_ratio is not None:
            yield f"Not decided yet: {result.measured.id} is {size} at the bad end."
        else:
            yield "Not known yet: whether the ends differ."
        yield "The budget ran out. Run the same command to continue."
        return
    if ending.outcome == "found":
        yield _commit_name(bad)
        yield f"{result.id}: {size} compared with the commit before it."
    elif ending.outcome == "range":
        yield f"One of these {len(ending.suspects)} commits; the data do not say which:"
        yield from (f"  {_commit_name(result.commits[place])}" for place in ending.suspects)
        yield f"{result.id}: {size} compared with {_commit_name(good)}."
    elif ending.outcome == "no difference":
        yield f"No difference: at {short_name(bad)}, {result.id} is {size} compared with"
        yield f"{short_name(good)}, which is within the margin. There is nothing to search."
    elif ending.outcome == "broken":
        yield f"{result.id} could not be measured at {short_name(good)} or {short_name(bad)}."
        yield "See the messages above and the records for the reason."
    elif ending.suspects:
        yield f"Possibly {_commit_name(bad)}: the search ended there, but in new launches"
        yield f"{result.id} is {size} compared with {_commit_name(good)}."
        yield "Use --launches to allow more launches."
    else:
        yield f"Inconclusive: at {short_name(bad)}, {result.id} is {size} compared with"
        yield f"{short_name(good)}, which may be noise. Use --launches to allow more launches."
    if result.is_merge and ending.outcome == "found":
        sha = short_name(bad)
        yield "It is a merge. To search the merged commits:"
        yield f"  corebound bisect $(git merge-base {sha}^1 {sha}^2) {sha}^2 …"


def _size(ending: BisectionOutcome, words: tuple[str, str]) -> str:
    better, worse = words
    if ending.slowdown_ratio is None or ending.interval is None:
        return f"{worse} or {better} by an unknown factor"
    ends = 1 / ending.interval.high, 1 / ending.interval.low
    return precise_speed(1 / ending.slowdown_ratio, ends, words)


def _commit_name(commit: Commit) -> str:
    return f"{short_name(commit)} {one_line(commit.subject)}"
