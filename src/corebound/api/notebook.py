"""What a notebook shows of results: the tables of the site, with the site's charts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from msgspec import Struct

from corebound.analysis.compared import ComparedRow
from corebound.analysis.launch_metrics import disturbed_note
from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.wording import (
    NOT_MEASURED,
    REFERENCE,
    VerdictWord,
    compared_bounds,
    count,
    day,
    relative_speed,
    verdict_word,
    within,
)
from corebound.report.charts.axis import Axis
from corebound.report.charts.intervals import (
    NARROW_COLUMN,
    IntervalPlot,
    comparison_axis,
    comparison_plot,
    effect_ticks,
    interval_svg,
)
from corebound.stats.comparison import Comparison as Statistics
from corebound.units import duration

# The colours and the marks of the site (reports/assets/site.css), for elements of this class only.
_STYLE = """
.corebound { color-scheme: light; --ink: light-dark(#14171b, #e9ecef);
  --soft: light-dark(#4a525b, #aab2bb); --line: light-dark(#dcdfe2, #2b3137);
  --band: light-dark(#e3e6e8, #272d34); --good: light-dark(#0059a6, #6bb2ff);
  --bad: light-dark(#a83c06, #ff935e); color: var(--ink); max-width: 60rem; overflow-x: auto;
  font: 0.875rem/1.4 system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
[data-jp-theme-light="false"] .corebound, .vscode-dark .corebound, [data-theme="dark"] .corebound {
  color-scheme: dark; }
.corebound p { margin: 0 0 0.4rem; color: var(--soft); }
.corebound p b { color: var(--ink); font-weight: 600; }
.corebound table { border-collapse: collapse; width: 100%; margin: 0 0 1rem; font-size: inherit;
  color: inherit; table-layout: auto; }
.corebound :is(td, th) { text-align: right; padding: 0.3rem 0.6rem; white-space: nowrap;
  border-bottom: 1px solid var(--line); font-weight: 400; vertical-align: middle;
  background: none; }
.corebound th { color: var(--soft); }
.corebound :is(td, th):first-child { text-align: left; white-space: normal; }
.corebound .verdict small { display: block; white-space: normal; max-width: 12rem;
  margin-left: auto; }
.corebound .texts :is(td, th) { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.corebound small { color: var(--soft); font-size: 0.8125rem; }
.corebound .plot, .corebound .axis { min-width: 12rem; width: 40%; padding-inline: 0; }
.corebound .axis { position: relative; height: 1.4rem; }
.corebound .axis span { position: absolute; bottom: 0.1rem; transform: translateX(-50%); }
.corebound .axis .minor { display: none; }
.corebound svg { display: block; width: 100%; height: 2.1rem; overflow: visible; }
.corebound svg path { fill: none; vector-effect: non-scaling-stroke; }
.corebound svg .good { --mode: var(--good); }
.corebound svg .bad { --mode: var(--bad); }
.corebound svg .plain { --mode: var(--soft); }
.corebound svg :is(.ci, .est, .run) { stroke: var(--mode); }
.corebound svg .ci { stroke-width: 3; }
.corebound svg .est { stroke-width: 11; stroke-linecap: round; }
.corebound svg .run { stroke-width: 4; stroke-linecap: round; opacity: 0.42; }
.corebound svg .one { stroke: var(--ink); }
.corebound svg .grid { stroke: var(--line); }
.corebound svg path.noise { fill: var(--band); }
.corebound .good { color: var(--good); }
.corebound .bad { color: var(--bad); }
"""


class _Row(Struct, frozen=True, kw_only=True):
    """One line: cells of text, its comparison, and the verdict."""

    texts: tuple[str, ...]
    statistics: Statistics | None
    margin: float
    verdict: VerdictWord | None
    note: str = ""


def compared_html(
    *tables: tuple[str, Sequence[str], Sequence[ComparedRow]],
) -> str:
    """Tables of compared rows with the chart of each interval.

    Args:
        tables: The head of each as HTML, four headings, and its rows; without rows, the head alone.
    """
    parts = (
        head + (_table(headings, [_compared_row(row) for row in rows]) if rows else "")
        for head, headings, rows in tables
    )
    return _document("".join(parts))


def table_html(heading: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Any result as a table of texts; line ends of the heading are kept."""
    head = f'<p style="white-space:pre-line"><b>{escape(heading)}</b></p>' if heading else ""
    titles = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in headings)
    top = f"<thead><tr>{titles}</tr></thead>" if any(headings) else ""
    cells = ("".join(f"<td>{escape(text)}</td>" for text in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return _document(f'{head}<table class="texts">{top}<tbody>{body}</tbody></table>')


def _compared_row(row: ComparedRow) -> _Row:
    verdict = verdict_word(row.verdict) if row.verdict else NOT_MEASURED
    is_chance = row.verdict in {"faster", "slower"} and not row.is_significant
    return _Row(
        texts=(
            row.cell if row.cell != "default" else row.scenario,
            _value(row.before, row.unit),
            _value(row.after, row.unit),
            row.change.replace(" (95 % CI ", "\n").removesuffix(")"),
        ),
        statistics=row.statistics,
        margin=row.margin,
        verdict=verdict,
        note="; ".join(
            filter(None, ("not significant after correction" if is_chance else "", row.note))
        ),
    )


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    return duration(value) if unit == "ns" else f"{value:.4g} {unit}"


def results_html(results: Sequence[ScenarioResult]) -> str:
    """Each scenario's configurations as a table with the chart of each interval."""
    if not results:
        return _document("<p>No results.</p>")
    return _document("".join(_scenario(result) for result in results))


def _scenario(result: ScenarioResult) -> str:
    run = result.run
    launches = sum(len(cell.summary.launches) for cell in result.cells)
    where = f"{run.host.name}, {day(run.started_at)}, {count(launches, 'launch', 'launches')}"
    head = f"<p><b>{escape(result.scenario.title)}</b><br>{escape(where)}</p>"
    rows = [_cell_row(cell, result.measure.margin) for cell in result.cells]
    return head + _table(("", "median", "against the baseline"), rows)


def _cell_row(cell: CellResult, margin: float) -> _Row:
    summary, statistics = cell.summary, cell.comparison
    median, change = "–", ""
    verdict = NOT_MEASURED
    if summary.median_ns is not None:
        median = duration(summary.median_ns)
        if (interval := summary.interval) is not None:
            bounds = within(interval.low, interval.high, duration, beside=summary.median_ns)
            median = f"{median}\n{bounds}"
        verdict = REFERENCE if cell.baseline is None else NOT_MEASURED
    if statistics is not None:
        verdict = verdict_word(statistics.verdict)
        change = f"{relative_speed(statistics.speedup_ratio)}\n{compared_bounds(statistics)}"
    return _Row(
        texts=(cell.cell.label, median, change),
        statistics=statistics,
        margin=margin,
        verdict=verdict,
        note=disturbed_note(summary),
    )


def _table(headings: Sequence[str], rows: Sequence[_Row]) -> str:
    compared = [row.statistics for row in rows if row.statistics is not None]
    margin = max((row.margin for row in rows), default=0.02)
    axis = comparison_axis(compared, margin=margin, with_pairs=True) if compared else None
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(_line(row, axis) for row in rows)
    ticks = _ticks(axis) if axis else ""
    return (
        f"<table><thead><tr>{head}<th>verdict</th>{ticks}</tr></thead><tbody>{body}</tbody></table>"
    )


def _ticks(axis: Axis) -> str:
    labels = (
        f'<span{" class=minor" if tick.minor else ""} style="left:{tick.at}%">'
        f"{escape(tick.text)}</span>"
        for tick in effect_ticks(axis, NARROW_COLUMN)
    )
    return f'<th class="axis">{"".join(labels)}</th>'


def _line(row: _Row, axis: Axis | None) -> str:
    cells = "".join(f"<td>{_text(text)}</td>" for text in row.texts)
    plot = ""
    if axis is not None:
        drawn: IntervalPlot = comparison_plot(
            row.statistics, margin=row.margin, verdict=row.verdict
        )
        plot = f'<td class="plot">{interval_svg(drawn, axis) if row.statistics else ""}</td>'
    verdict = ""
    if row.verdict is not None:
        note = f"<small>{escape(row.note)}</small>" if row.note else ""
        word = escape(f"{row.verdict.sign} {row.verdict.word}".strip())
        verdict = f'<span class="{row.verdict.tone}">{word}</span>{note}'
    return f'<tr>{cells}<td class="verdict">{verdict}</td>{plot}</tr>'


def _text(text: str) -> str:
    first, _, second = text.partition("\n")
    return escape(first) + (f"<br><small>{escape(second)}</small>" if second else "")


def _document(content: str) -> str:
    return f'<div class="corebound"><style>{_STYLE}</style>{content}</div>'
