"""`corebound compare-commits`: measure two commits, versions or parameter values interleaved."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Literal

import typer
from msgspec.structs import replace
from rich.table import Table
from rich.text import Text

from corebound import text
from corebound.analysis.commit_comparison import CellAtCommits
from corebound.analysis.launch_modes import mode_text
from corebound.analysis.wording import compared_bounds
from corebound.cli.options import Json, Quiet, typed_command
from corebound.cli.output.console import Console, fits, print_table
from corebound.cli.output.json import result_json
from corebound.cli.output.junit import TestCase, TestFailure, junit_xml
from corebound.cli.output.progress import TerminalReporter
from corebound.cli.output.verdicts import (
    duration_text,
    slowdown_bounds,
    slowdown_text,
    verdict_text,
)
from corebound.stats.comparison import Comparison
from corebound.workflow import compare_commits as workflow
from corebound.workflow.compare_commits import CompareCommitsRequest, CompareCommitsResult
from corebound.workflow.comparison_sides import Side
from corebound.workflow.options import Option

Format = Literal["text", "md", "json", "junit"]

_HEADINGS = ("verdict", "cell", "base", "head", "head ÷ base (95 %)")


def compare_commits(
    request: CompareCommitsRequest,
    *,
    form: Annotated[Format, Option("Output format.", name="--format")] = "text",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Build two commits, measure them interleaved, and judge.

    Instead of commits, compare two values of a key, two files of environments/, or two versions
    of a package. Exits with 1 if a cell became slower.

    Examples:
        corebound compare-commits main HEAD
        corebound compare-commits threads=1 threads=2 hashing.yaml
        corebound compare-commits torch==2.12.0 torch==2.13.0
    """
    resume_command = typed_command() if request.resume else f"{typed_command()} --resume"
    comparison = workflow.compare_commits(
        request,
        TerminalReporter(Console(stderr=True, quiet=quiet), resume_command=resume_command),
    )
    typer.echo(formatted(comparison, "json" if as_json else form))
    raise typer.Exit(comparison.exit_code)


def formatted(comparison: CompareCommitsResult, form: Format) -> str:
    """Render the result in a format, without a final newline."""
    formats: dict[Format, Callable[[CompareCommitsResult], str]] = {
        "text": _text,
        "md": _markdown,
        "json": lambda comparison: result_json(comparison.document),
        "junit": _junit,
    }
    return formats[form](comparison)


def _headline(comparison: CompareCommitsResult) -> str:
    verdicts = comparison.verdicts
    count = sum(cell.verdict is not None for cell in verdicts)
    slower = sum(cell.is_regression for cell in verdicts)
    headline = f"{slower} of {count} cells slower" if count else "Nothing could be compared"
    if faster := sum(cell.verdict == "faster" for cell in verdicts):
        headline += f", {faster} faster"
    if inconclusive := sum(cell.verdict == "inconclusive" for cell in verdicts):
        headline += f", {inconclusive} inconclusive"
    if missing := sum(bool(cell.missing) for cell in verdicts):
        headline += f", {missing} without results"
    return headline + (" (the budget ran out)." if comparison.ending == "out of time" else ".")


def _text(comparison: CompareCommitsResult) -> str:
    sides = comparison.sides
    lines = [
        f"{sides.subject}: {_side_name(sides.base)}",
        f"{'':{len(sides.subject)}}→ {_side_name(sides.head)}",
        "",
    ]
    lines += _table_lines(comparison)
    for reason in _reasons(comparison):
        lines += ["", *reason.splitlines()]
    lines += [
        "",
        _headline(comparison),
        *_notes(comparison),
        *comparison.noise,
        f"Records: {comparison.records}",
    ]
    return "\n".join(map(text.one_line, lines))


def _table_lines(comparison: CompareCommitsResult) -> list[str]:
    """One row for each cell; each takes two lines if the terminal is too narrow for one."""
    console = Console(color_system=None)
    wide, stacked = (_table(comparison, is_stacked=each) for each in (False, True))
    is_stacked = not fits(wide, console) and fits(stacked, console)
    with console.capture() as captured:
        print_table(stacked if is_stacked else wide, console)
    return [line.rstrip() for line in captured.get().splitlines()]


# Where a value breaks in two lines, and what begins the second.
_BREAKS = ((", ~", ",\n~"), ("[", "\n["), (" (", "\n("))


def _table(comparison: CompareCommitsResult, *, is_stacked: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    rows = [_HEADINGS, *map(_row, comparison.verdicts)]
    if is_stacked:
        for before, after in _BREAKS:
            rows = [tuple(value.replace(before, after) for value in row) for row in rows]
    headings, *values = rows
    for heading in headings:
        is_number = heading not in {"verdict", "cell"}
        table.add_column(
            heading,
            justify="right" if is_number else "left",
            no_wrap=heading != "cell" and not is_stacked,
            overflow="fold",
        )
    for row in values:
        table.add_row(*map(Text, row))
    return table


def _row(cell: CellAtCommits) -> tuple[str, ...]:
    return (
        verdict_text(cell.comparison, cell.verdict) if cell.comparison else "– no result",
        cell.name,
        duration_text(cell.before),
        duration_text(cell.after),
        _slowdown(cell.comparison, confidence=""),
    )


def _slowdown(comparison: Comparison | None, *, confidence: str = "95 % CI ") -> str:
    """Time at head divided by time at base, with its interval: the effect of the commit."""
    if comparison is None:
        return "–"
    return slowdown_text(
        1 / comparison.speedup_ratio,
        slowdown_bounds(comparison),
        confidence=confidence,
        missing=compared_bounds(comparison),
    )


def _side_name(side: Side) -> str:
    return f"{side.name} {side.title}".rstrip()


def _notes(comparison: CompareCommitsResult) -> tuple[str, ...]:
    return (*_mode_notes(comparison), *_cpu_notes(comparison))


def _mode_notes(comparison: CompareCommitsResult) -> tuple[str, ...]:
    """Notes where launches have two modes."""
    return tuple(
        f"{cell.name}: {note}"
        for cell in comparison.verdicts
        if (note := mode_text(cell.comparison))
    )


def _cpu_notes(comparison: CompareCommitsResult) -> tuple[str, ...]:
    """Notes where CPU time disagrees with elapsed time; on a busy host, it is more reliable."""
    return tuple(
        f"{cell.name}: the ratio of CPU times is"
        f" {cell.cpu_ratio:.3f}×, outside that interval. The elapsed time includes waiting or"
        " other programs."
        for cell in comparison.verdicts
        if cell.cpu_differs
    )


def _reasons(comparison: CompareCommitsResult) -> tuple[str, ...]:
    """The reasons for missing results, each once: a failed build fails for all cells."""
    return tuple(dict.fromkeys(reason for cell in comparison.verdicts for reason in cell.missing))


def _markdown(comparison: CompareCommitsResult) -> str:
    sides = comparison.sides
    lines = [
        f"**{_headline(comparison)}**",
        "",
        f"{text.markdown(sides.subject)}: "
        + " → ".join(
            f"`{side.name}` {text.markdown(side.title)}".rstrip()
            for side in (sides.base, sides.head)
        ),
        "",
        f"| {' | '.join(_HEADINGS)} |",
        "|---|---|---:|---:|---:|",
    ]
    for judged in comparison.verdicts:
        verdict, cell, *values = _row(judged)
        verdict = f"**{verdict}**" if judged.is_regression else verdict
        lines.append(f"| {' | '.join((verdict, text.markdown(cell), *values))} |")
    for reason in _reasons(comparison):
        fence = "`" * max(3, 1 + max((len(ticks) for ticks in re.findall("`+", reason)), default=0))
        lines += ["", fence, reason, fence]
    for sentence in (*_notes(comparison), *comparison.noise):
        lines += ["", text.markdown(sentence)]
    return "\n".join(lines)


def _junit(comparison: CompareCommitsResult) -> str:
    cases = [_test_case(cell) for cell in comparison.verdicts]
    return junit_xml("corebound compare-commits", cases, notes=comparison.noise)


def _test_case(cell: CellAtCommits) -> TestCase:
    slowdown = _slowdown(cell.comparison)
    case = TestCase(classname=cell.scenario, name=cell.cell)
    if cell.missing:
        reason = "\n".join(cell.missing)
        error = TestFailure(type="no result", message=reason.partition("\n")[0], details=reason)
        return replace(case, errors=(error,))
    if cell.is_regression:
        return replace(
            case, failure=TestFailure(type="regression", message=slowdown, details=slowdown)
        )
    verdict = verdict_text(cell.comparison, cell.verdict) if cell.comparison else "– no result"
    _sign, _, words = verdict.partition(" ")
    return replace(case, output=f"{words}: {slowdown}")
