"""`corebound reproduce`: measure a recorded result again under the same conditions, and compare."""

import typer

from corebound import units
from corebound.analysis.run_comparison import RUNS_CAVEAT, run_spread_note
from corebound.analysis.wording import precise_speed, value_text, verdict_word
from corebound.cli.options import Output
from corebound.cli.output.console import Console
from corebound.cli.output.progress import TerminalReporter
from corebound.errors import REGRESSION
from corebound.workflow.reproduce import ReproduceRequest, ReproduceResult, reproduce_result


def reproduce(request: ReproduceRequest, console: Console) -> Output:
    """Reproduce a result, and report whether it holds.

    Exits with 1 if it does not hold.

    Examples:
        corebound reproduce 1f0c2d3e
        corebound reproduce 1f0c:threads=1 --launches 20
    """
    result = reproduce_result(request, TerminalReporter(console))
    code = REGRESSION if result.holds is False else 0
    return Output(result, lambda: typer.echo(_text(result)), code)


def _text(result: ReproduceResult) -> str:
    before_ns, after_ns = result.medians_ns
    before, after = result.launches
    recorded = f"{value_text(before_ns, result.measured)} recorded ({before} launches)"
    now = f"{value_text(after_ns, result.measured)} now ({after} launches)"
    lines = [
        _answer(result),
        f"{result.id}: {recorded}, {now}: {_size(result)}.",
        *(f"Difference: {difference}." for difference in result.differences),
    ]
    commit = result.before.commit
    if commit is not None and commit.dirty and commit.tree is None:
        lines.append("The recorded run measured uncommitted changes; this run does not.")
    return "\n".join(
        (
            *lines,
            RUNS_CAVEAT,
            run_spread_note(result.between),
            *result.noise,
            f"Records: {result.records[1]}",
        )
    )


def _answer(result: ReproduceResult) -> str:
    verdict = result.comparison.verdict
    described = verdict_word(verdict, result.measured.words)
    sign, word = described.sign, described.word
    if result.holds:
        return f"{sign} The result holds: equivalent, within ±{units.percent(result.margin, 0)}."
    if result.holds is False:
        return f"{sign} The result does not hold: {word}."
    needed = result.comparison.launches_needed
    more = f" About {needed} launches are needed: --launches {needed}." if needed else ""
    if verdict == "inconclusive":
        return f"{sign} Inconclusive.{more}"
    return f"? Inconclusive: {word}, but possibly within the margin.{more}"


def _size(result: ReproduceResult) -> str:
    ratio, ends = result.comparison.speedup_ratio, result.comparison.speedup_interval
    return precise_speed(ratio, ends, result.measured.words)
