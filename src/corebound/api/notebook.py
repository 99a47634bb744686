"""What a notebook shows of results: the tables of the site, with the site's charts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from corebound.analysis.launch_metrics import disturbed_note
from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.wording import (
    NOT_MEASURED,
    REFERENCE,
    compared_bounds,
    count,
    day,
    relative_speed,
    verdict_word,
    within,
)
from corebound.present.sections import (
    Change,
    Column,
    Duration,
    Marked,
    Named,
    Ratio,
    Table,
    Value,
    text_of,
)
from corebound.report.charts.axis import Axis
from corebound.report.charts.intervals import (
    NARROW_COLUMN,
    comparison_axis,
    comparison_plot,
    effect_ticks,
    interval_svg,
)
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


def compared_html(*parts: tuple[str, Table]) -> str:
    """Tables of comparisons with the chart of each interval, each below its head, which is HTML."""
    return _document("".join(head + (_table(table) if table.rows else "") for head, table in parts))


def table_html(heading: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Any result as a table of texts; line ends of the heading are kept."""
    head = f'<p style="white-space:pre-line"><b>{escape(heading)}</b></p>' if heading else ""
    titles = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in headings)
    top = f"<thead><tr>{titles}</tr></thead>" if any(headings) else ""
    cells = ("".join(f"<td>{escape(text)}</td>" for text in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return _document(f'{head}<table class="texts">{top}<tbody>{body}</tbody></table>')


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
    table = Table(
        title="",
        columns=(
            Column("configuration"),
            Column("median", "number"),
            Column("interval plot", "effects"),
            Column("against the baseline", "number"),
            Column("verdict"),
        ),
        rows=tuple(_cell_row(cell, result.measure.margin) for cell in result.cells),
    )
    return head + _table(table)


def _cell_row(cell: CellResult, margin: float) -> tuple[Value, ...]:
    summary, compared = cell.summary, cell.comparison
    verdict = NOT_MEASURED
    if compared is not None:
        verdict = verdict_word(compared.verdict)
    elif summary.median_ns is not None and cell.baseline is None:
        verdict = REFERENCE
    return (
        cell.cell.label,
        Duration(summary.median_ns, summary.interval),
        Change(compared, ("faster", "slower"), margin),
        Ratio(relative_speed(compared.speedup_ratio), compared_bounds(compared))
        if compared
        else "",
        Marked(word=verdict, notes=tuple(filter(None, (disturbed_note(summary),)))),
    )


def _table(table: Table) -> str:
    compared = [change.comparison for change in table.effects if change.comparison is not None]
    margin = max((change.margin for change in table.effects), default=0.0)
    axis = comparison_axis(compared, margin=margin, with_pairs=True) if compared else None
    shown = [
        at for at, column in enumerate(table.columns) if column.is_drawn or not column.needs_page
    ]
    heads = "".join(_heading(table.columns[at], axis) for at in shown)
    body = "".join(
        f"<tr>{''.join(_cell(row[at], axis) for at in shown)}</tr>" for row in table.rows
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _heading(column: Column, axis: Axis | None) -> str:
    if column.is_drawn:
        return _ticks(axis) if axis else "<th></th>"
    return f"<th>{escape(column.heading)}</th>"


def _ticks(axis: Axis) -> str:
    labels = (
        f'<span{" class=minor" if tick.minor else ""} style="left:{tick.at}%">'
        f"{escape(tick.text)}</span>"
        for tick in effect_ticks(axis, NARROW_COLUMN)
    )
    return f'<th class="axis">{"".join(labels)}</th>'


def _cell(value: Value, axis: Axis | None) -> str:
    match value:
        case Change():
            plot = comparison_plot(value.comparison, margin=value.margin, verdict=value.verdict)
            drawn = interval_svg(plot, axis) if axis and value.comparison else ""
            return f'<td class="plot">{drawn}</td>'
        case Marked():
            word = f'<span class="{value.word.tone}">{escape(value.word.text)}</span>'
            notes = "".join(f"<small>{escape(note)}</small>" for note in value.notes)
            return f'<td class="verdict">{word}{notes}</td>'
        case Named():
            first, second = value.name, value.more
        case Ratio():
            first, second = value.value, value.interval
        case Duration(value_ns=median, interval=span) if span is not None:
            first, second = value.text, within(span.low, span.high, duration, beside=median)
        case _:
            first, second = text_of(value), ""
    below = f"<br><small>{escape(second)}</small>" if second else ""
    return f"<td>{escape(first)}{below}</td>"


def _document(content: str) -> str:
    return f'<div class="corebound"><style>{_STYLE}</style>{content}</div>'
