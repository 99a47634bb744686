"""What a notebook shows of results: the tables of the site, with the site's charts."""

from collections.abc import Sequence
from html import escape

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.wording import count, day, within
from corebound.present import sections
from corebound.present.run import scenario_table
from corebound.present.shown import in_notebook
from corebound.report.charts.axis import Axis
from corebound.report.charts.intervals import (
    NARROW_COLUMN,
    comparison_axis,
    effect_ticks,
    interval_svg,
)
from corebound.units import duration


def compared_html(*parts: tuple[str, sections.Table]) -> str:
    """Tables of comparisons with the chart of each interval, each below its head, which is HTML."""
    shown = (head + (_table(table) if table.rows else "") for head, table in parts)
    return in_notebook("".join(shown))


def results_html(results: Sequence[ScenarioResult]) -> str:
    """Each scenario's configurations as a table with the chart of each interval."""
    if not results:
        return in_notebook("<p>No results.</p>")
    return in_notebook("".join(_scenario(result) for result in results))


def _scenario(result: ScenarioResult) -> str:
    run = result.run
    launches = sum(len(cell.summary.launches) for cell in result.cells)
    where = f"{run.host.name}, {day(run.started_at)}, {count(launches, 'launch', 'launches')}"
    head = f"<p><b>{escape(result.scenario.title)}</b><br>{escape(where)}</p>"
    return head + _table(scenario_table(result))


def _table(table: sections.Table) -> str:
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


def _heading(column: sections.Column, axis: Axis | None) -> str:
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


def _cell(value: sections.Value, axis: Axis | None) -> str:
    match value:
        case sections.Change():
            drawn = (
                interval_svg(value.comparison, axis, value.margin, verdict=value.verdict)
                if axis and value.comparison
                else ""
            )
            return f'<td class="plot">{drawn}</td>'
        case sections.Marked():
            word = f'<span class="{value.word.tone}">{escape(value.word.text)}</span>'
            notes = "".join(f"<small>{escape(note)}</small>" for note in value.notes)
            return f'<td class="verdict">{word}{notes}</td>'
        case sections.Named():
            first, second = value.name, value.more
        case sections.Ratio():
            first, second = value.value, value.interval
        case sections.Duration(value_ns=median, interval=span) if span is not None:
            first, second = value.text, within(span.low, span.high, duration, beside=median)
        case _:
            first, second = sections.text_of(value), ""
    below = f"<br><small>{escape(second)}</small>" if second else ""
    return f"<td>{escape(first)}{below}</td>"
