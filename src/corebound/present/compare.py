"""What is said of two runs, or of two commits, values or versions: verdict, table and notes."""

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from corebound.analysis.change_history import NO_BINDING_MODE
from corebound.analysis.commit_comparison import (
    COMMITS_CAVEAT,
    CellAtCommits,
    CommitComparison,
    ComparedSeries,
    InterleavedComparison,
)
from corebound.analysis.compared import ComparedRow, comparison_summary
from corebound.analysis.launch_modes import mode_text
from corebound.analysis.run_changes import changes_text
from corebound.analysis.run_comparison import (
    RUNS_CAVEAT,
    ComparedCell,
    RunComparison,
    commit_title,
    run_title,
    run_variation_note,
)
from corebound.analysis.series_names import short_cell_names
from corebound.analysis.series_wording import point_value
from corebound.analysis.suggested_commands import (
    CommandLine,
    between_command,
    compare_again_command,
)
from corebound.analysis.wording import (
    Label,
    Text,
    TextSpan,
    ValueWithBounds,
    count,
    day,
    label,
    open_note,
    plain,
    rich,
    time_text,
    value_bounds,
    value_text,
)
from corebound.present import sections
from corebound.stats.launch_summary import CellSummary

Compared = RunComparison | CommitComparison


def compare_sections(
    comparison: Compared | InterleavedComparison, *, show_all: bool = False
) -> tuple[sections.Section, ...]:
    """What a terminal and Markdown show of a comparison.

    Args:
        comparison: The comparison. What was measured interleaved is shown with all its cells.
        show_all: Whether to show also rows without a clear difference. They are shown anyway if
            nothing could be decided: the differences are all that there is to see.
    """
    if isinstance(comparison, InterleavedComparison):
        return _interleaved_sections(comparison)
    rows = comparison.rows
    show_all = show_all or not any(row.comparison and row.comparison.interval for row in rows)
    table = compare_table(comparison, shows=lambda row: show_all or row.is_finding)
    more = "" if len(table.rows) == len(rows) else " --all lists them."
    before, after = side_titles(comparison)
    return (
        sections.Facts(
            (sections.Fact(term="Before", value=before), sections.Fact(term="After", value=after)),
            title=comparison.project if isinstance(comparison, CommitComparison) else "",
        ),
        sections.Sentence(plain(comparison_verdict(comparison)), "lead"),
        sections.Sentence(f"{comparison_summary(rows, noun_of(comparison))}.{more}"),
        *((table,) if table.rows else ()),
        *map(sections.Sentence, _also_changed(comparison)),
        *map(sections.Sentence, _not_compared(comparison)),
        sections.Sentence(reservation(comparison)),
        *map(sections.Sentence, comparison.noise if isinstance(comparison, RunComparison) else ()),
    )


def noun_of(comparison: Compared) -> tuple[str, str]:
    """The word for a row, singular and plural."""
    return ("cell", "cells") if isinstance(comparison, RunComparison) else ("series", "series")


def side_titles(comparison: Compared) -> tuple[str, str]:
    """The two runs or commits in words."""
    if isinstance(comparison, RunComparison):
        return run_title(comparison.before), run_title(comparison.after)
    before, after = (
        f"{commit_title(commit)}, {day(commit.committed_at)}"
        for commit in (comparison.before, comparison.after)
    )
    return before, after


def reservation(comparison: Compared) -> str:
    """What the way in which both were measured leaves open."""
    if isinstance(comparison, CommitComparison):
        return COMMITS_CAVEAT
    return f"{RUNS_CAVEAT} {run_variation_note(comparison)}".strip()


def _also_changed(comparison: Compared) -> Iterator[str]:
    if isinstance(comparison, RunComparison) and (changes := changes_text(comparison.changes)):
        yield f"Also changed: {changes}."


def _not_compared(comparison: Compared) -> Iterator[str]:
    for name, reason in comparison.not_comparable:
        yield f"Not compared: {name}: {reason}."
    if only := len(comparison.only_in_one):
        verb = "is" if only == 1 else "are"
        sides = "runs" if isinstance(comparison, RunComparison) else "commits"
        yield f"{count(only, *noun_of(comparison))} {verb} in one of the {sides} only."


def comparison_verdict(comparison: Compared) -> Text:
    """How many rows clearly differ, and in which direction."""
    noun, rows = noun_of(comparison), comparison.rows
    words = ("worse", "better")
    if isinstance(comparison, RunComparison):
        words = (
            ("with more memory", "with less memory") if _of_memory(rows) else ("slower", "faster")
        )
    slower = sum(row.verdict == "slower" for row in rows)
    faster = sum(row.verdict == "faster" for row in rows)
    if not slower + faster:
        return rich(f"No {noun[0]} clearly differs.")
    parts: list[str | TextSpan] = []
    if slower:
        parts += [f"{count(slower, *noun)} ", TextSpan(words[0], "bad")]
    if faster:
        parts += [", " if parts else "", f"{count(faster, *noun)} ", TextSpan(words[1], "good")]
    return rich(*parts, ".")


def _of_memory(rows: Sequence[ComparedRow]) -> bool:
    return any(row.is_memory for row in rows)


def compare_table(
    comparison: Compared,
    *,
    shows: Callable[[ComparedRow], bool] = lambda _: True,
    most: int | None = None,
    address: Callable[[ComparedRow], str] = lambda _: "",
) -> sections.Table:
    """The rows of a comparison, the clearest differences first.

    Args:
        comparison: Two runs, or two commits of an imported project.
        most: The most rows to show.
    """
    if isinstance(comparison, RunComparison):
        cells = [cell for cell in comparison.cells if shows(cell)][:most]
        return _table("cell", [_cell(comparison, cell, address(cell)) for cell in cells])
    series = [each for each in comparison.series if shows(each)][:most]
    known = [each.series for each in series]
    return _table(
        "series",
        [
            _series(each, own, address(each))
            for each, own in zip(series, short_cell_names(known), strict=True)
        ],
    )


def _cell(comparison: RunComparison, cell: ComparedCell, link: str) -> tuple[sections.Value, ...]:
    return _row(
        cell,
        sections.Named(cell.title, label=label(cell.configuration), link=link),
        sections.Pair(_of_launches(cell.before_summary), _of_launches(cell.after_summary)),
        compare_again_command(comparison.before, comparison.after, cell.configuration),
        doubt=comparison.code or "",
    )


def _series(row: ComparedSeries, own: str, link: str) -> tuple[sections.Value, ...]:
    return _row(
        row,
        sections.Named(
            row.series.title, label=Label(mode=NO_BINDING_MODE, name=own, more=""), link=link
        ),
        sections.Pair(
            point_value(row.series, row.before_point), point_value(row.series, row.after_point)
        ),
        between_command((row.series,), row.before_point, row.after_point),
    )


def rows_table(rows: Sequence[ComparedRow], both: str = "before, after") -> sections.Table:
    """Rows of any comparison, by their names alone; `both` is the heading of their values."""
    return _table(
        "cell",
        [
            _row(
                row,
                sections.Named(
                    row.scenario, label=Label(mode=NO_BINDING_MODE, name=row.cell, more="")
                ),
                sections.Pair(_plain_value(row, row.before), _plain_value(row, row.after)),
            )
            for row in rows
        ],
        both,
    )


def _table(
    name: str, rows: Sequence[tuple[sections.Value, ...]], both: str = "before, after"
) -> sections.Table:
    return sections.Table(
        title="",
        columns=(
            sections.Column(name, "long"),
            sections.Column(both),
            sections.Column("interval plot", "effects"),
            sections.Column("change (95 % CI)", "number"),
            sections.Column("verdict"),
            sections.Column("reproduce", "commands"),
        ),
        rows=tuple(rows),
    )


def _row(
    row: ComparedRow,
    name: sections.Named,
    values: sections.Pair,
    command: CommandLine | None = None,
    *,
    doubt: str = "",
) -> tuple[sections.Value, ...]:
    """A row; `doubt` is why a difference may not come from the code."""
    verdict, note = row.verdict_word, open_note(row.comparison)
    if doubt and row.is_finding:
        verdict, note = replace(verdict, tone="plain"), f"{doubt}: host or noise"
    return (
        name,
        values,
        sections.Change(row.comparison, row.words, row.margin, verdict),
        sections.Ratio(row.ratio_text, row.bounds) if row.comparison else "–",
        sections.Marked(word=verdict, notes=tuple(filter(None, (note, row.note)))),
        sections.Commands(lines=(command,) if command else (), of=name.text),
    )


def _plain_value(row: ComparedRow, value: float | None) -> ValueWithBounds:
    if row.unit == "ns" or value is None:
        return ValueWithBounds(value=time_text(value))
    return ValueWithBounds(value=f"{value:.4g} {row.unit}")


def _of_launches(summary: CellSummary) -> ValueWithBounds:
    median = summary.median_ns
    return ValueWithBounds(
        value=value_text(median, summary.cell),
        ends=value_bounds(summary.interval, summary.cell, median),
    )


def _interleaved_sections(comparison: InterleavedComparison) -> tuple[sections.Section, ...]:
    sides, cells = comparison.sides, comparison.cells
    base, head = (f"{side.name} {side.title}".rstrip() for side in (sides.base, sides.head))
    # A failed build fails for all cells.
    reasons = dict.fromkeys(reason for cell in cells for reason in cell.missing)
    return (
        sections.Sentence(f"{sides.subject}: {base} → {head}"),
        sections.Sentence(_headline(comparison), "lead"),
        rows_table(cells, "base, head"),
        *map(sections.Log, reasons),
        *map(sections.Sentence, _notes(cells)),
        *map(sections.Sentence, comparison.noise),
        sections.Facts((sections.Fact(term="Records", value=str(comparison.records)),)),
    )


def _headline(comparison: InterleavedComparison) -> str:
    cells = comparison.cells
    words = ("less", "more memory") if _of_memory(cells) else ("faster", "slower")
    compared = sum(cell.verdict is not None for cell in cells)
    slower = sum(cell.is_regression for cell in cells)
    counts = {
        words[0]: sum(cell.verdict == "faster" for cell in cells),
        "inconclusive": sum(cell.verdict == "inconclusive" for cell in cells),
        "without results": sum(bool(cell.missing) for cell in cells),
    }
    parts = [
        f"{slower} of {compared} cells {words[1]}" if compared else "Nothing could be compared"
    ]
    parts += [f"{number} {what}" for what, number in counts.items() if number]
    end = " (the budget ran out)." if comparison.ending == "out of time" else "."
    return f"{', '.join(parts)}{end}"


def _notes(cells: Sequence[CellAtCommits]) -> Iterator[str]:
    """Where launches have two modes, or CPU time, more reliable on a busy host, disagrees."""
    for cell in cells:
        if note := mode_text(cell.comparison):
            yield f"{cell.name}: {note}"
    for cell in cells:
        if cell.cpu_differs and not _of_memory(cells):
            yield (
                f"{cell.name}: the ratio of CPU times is {cell.cpu_ratio:.3f}×, outside that"
                " interval. The elapsed time includes waiting or other programs."
            )
