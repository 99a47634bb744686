"""Renders pages to HTML: templates, charts and filters; external text is escaped."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial, wraps
from typing import Any, Literal

from jinja2 import BytecodeCache, DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from corebound import units
from corebound.analysis import change_history, series_wording, suggested_commands, triage, wording
from corebound.analysis.duplicate_names import long_names
from corebound.analysis.launch_counts import fix_of, launch_counts
from corebound.analysis.launch_metrics import metric_of
from corebound.analysis.run_comparison import commit_title
from corebound.analysis.suggested_commands import CommandLine
from corebound.analysis.throughput import is_peak_plausible, peak_share_text, throughput
from corebound.present.changes import entry_commits, entry_subject, levels_text, status_of
from corebound.report import urls
from corebound.report.charts import (
    commits,
    cpu_time,
    history,
    intervals,
    launches,
    lines,
    topology,
)
from corebound.report.charts.axis import vertical_ticks
from corebound.report.navigation import Part
from corebound.report.pages.claims import claim_command, claim_verdict
from corebound.report.pages.history import change_step_svg, entry_changes, entry_location
from corebound.report.pages.series_table import no_change
from corebound.report.scenario import configurations, threads
from corebound.report.scenario.heat_map import effect_tint
from corebound.report.scenario.launches import (
    log_tail,
    settled_text,
    status_tone,
    steady_state_text,
)
from corebound.report.scenario.provenance import command_comment
from corebound.stats.intervals import Interval

Kind = Literal[
    "overview", "scenario", "history", "benchmark", "run", "host", "hosts", "compare",
    "comparisons", "claims", "operators", "feed", "badge", "tune",
]  # fmt: skip
# The part of the site that pages of a kind belong to, and whether they are its main page.
_PARTS: dict[Kind, tuple[Part, Literal["page", "true"]]] = {
    "overview": ("Overview", "page"),
    "scenario": ("Scenarios", "true"),
    "history": ("History", "page"),
    "benchmark": ("History", "true"),
    "comparisons": ("Compare", "page"),
    "compare": ("Compare", "true"),
    "hosts": ("Hosts", "page"),
    "host": ("Hosts", "true"),
    "run": ("Hosts", "true"),
    "tune": ("Scenarios", "true"),
    "claims": ("Claims", "page"),
    "operators": ("Operators", "page"),
}
# Characters that neither HTML nor XML can represent, and overrides of the direction of writing,
# which would turn around our own text too; a log or the name of a host may contain them.
_UNWRITABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef\ufffe\uffff]"
)
_TEMPLATES: dict[Kind, str] = {"feed": "feed.xml", "badge": "badge.svg"}


# A number and its unit stay on one line.
_UNIT = re.compile(
    "(?<=[0-9]) (?=(?:%|ns|µs|ms|s|KiB|MiB|GiB|GHz|MHz|UTC|×)(?![0-9A-Za-z]))|(?<=×) (?=[0-9])"
)


# A missing value is shown as a dash and read out as a word, because screen readers skip a dash.
MISSING = "–"
_NONE = Markup('<span class="nil">none</span>')


def _mark_missing(value: object) -> object:
    return _NONE if value == MISSING else value


def _with_units(text: str) -> str:
    return _UNIT.sub("\N{NO-BREAK SPACE}", text)


# Browsers break lines after the dashes of an option and of a date.
_DASHED = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|[0-9]{4}-[0-9]{2}-[0-9]{2}(?![\w-]))")
_ON_ONE_LINE = Markup('<span style="white-space:nowrap">{}</span>')


def keep_together(text: str) -> Markup:
    """Keep each number with its unit, each option and each date in a sentence on one line.

    >>> keep_together("run --resume")
    Markup('run <span style="white-space:nowrap">--resume</span>')
    """
    parts = _DASHED.split(_with_units(text))
    return Markup("").join(
        _ON_ONE_LINE.format(part) if index % 2 else part for index, part in enumerate(parts)
    )


# A word of this many characters may break where these signs join two parts.
_LONG_WORD = 9
_WORDS = re.compile(r"(\s+)")
_JOINT = re.compile(r"(?<=[._,=])(?![._,=]|$)(?<!(?<=[0-9])[.,](?=[0-9]))")
# Hidden from screen readers, which otherwise read a space there.
_BREAK = Markup('<wbr aria-hidden="true">')


@lru_cache(maxsize=1024, typed=True)  # a page has most names several times
def soft_break(name: str) -> Markup:
    """A name whose long words may break between their parts; copying and searching still work.

    >>> soft_break("runner.time_all")
    Markup('runner.<wbr aria-hidden="true">time_<wbr aria-hidden="true">all')
    """
    return Markup("").join(
        _BREAK.join(_JOINT.split(word)) if len(word) >= _LONG_WORD else word
        for word in _WORDS.split(name)
    )


# A longer unit may wrap to the next line.
_SHORT_UNIT = 4
_VALUES = re.compile(r"(.*[0-9∞\])])( .*|)", re.DOTALL)


def nowrap(text: str) -> str:
    """Values in a table cell on one line, except for a long unit, which may wrap.

    >>> nowrap("28.7 to 44.2 ms").count("\N{NO-BREAK SPACE}")
    3
    >>> nowrap("28.7 to 44.2 % overhead").partition(" ")[2]
    '% overhead'
    """
    match = _VALUES.fullmatch(text)
    if match is None or len(match[2]) <= 1 + _SHORT_UNIT:
        return text.replace(" ", "\N{NO-BREAK SPACE}")
    return match[1].replace(" ", "\N{NO-BREAK SPACE}") + match[2]


def _command_lines(commands: CommandLine | Sequence[CommandLine], *, records: str) -> str:
    """Commands for records in this folder, one per line."""
    lines = (commands,) if isinstance(commands, CommandLine) else commands
    return "\n".join(command.at(records) for command in lines)


def _or_dash(write: Callable[..., str]) -> Callable[..., str]:
    """A filter that shows a missing value, None, as a dash."""

    @wraps(write)
    def filtered(value: object, *arguments: object) -> str:
        return MISSING if value is None else write(value, *arguments)

    return filtered


def _number(value: float, unit: float = 1.0) -> str:
    return units.significant(value / unit)


_FORMATS: dict[str, Callable[[float], str]] = {
    "duration": wording.time_text,
    "bytes": units.size,
    "number": units.significant,
    "percent": units.percent,
    "whole_percent": partial(units.percent, digits=0),
    "quantity": units.counted,
}


def _interval(
    interval: Interval | tuple[float, float] | None,
    kind: str = "ratio",
    unit: float = 1.0,
    beside: float | None = None,
) -> str:
    """Both ends of an interval, of ratios or in one of the formats; empty if none.

    A unit that is that of the value `beside` it is left out.
    """
    if interval is None:
        return ""
    low, high = interval.ends if isinstance(interval, Interval) else interval
    if kind == "ratio":
        return wording.bounds(low, high)
    return wording.within(low / unit, high / unit, _FORMATS[kind], beside=beside)


def _span(
    ends: tuple[float, float] | None, kind: str, unit: float = 1.0, beside: float | None = None
) -> str:
    """A minimum and a maximum in one of the formats; empty if there are none."""
    if ends is None:
        return ""
    return wording.ends(ends[0] / unit, ends[1] / unit, _FORMATS[kind], beside=beside)


# What templates call by its own name: filters of names, filters that belong to parts of pages, and
# functions.
_NAMES_AND_ADDRESSES = (
    wording.and_more, wording.capital, wording.full_name, series_wording.missing_since,
    series_wording.last_measured, series_wording.interval_name, wording.plain, urls.badge_file,
    urls.data_of, urls.host_file, urls.moments_file, urls.points_file, urls.raw_file,
    urls.run_file, urls.scenario_points_file, urls.series_url, urls.series_anchor,
    urls.entry_anchor,
)  # fmt: skip
_FILTERED = (
    wording.coded, wording.value_text, wording.value_bounds, wording.value_span,
    wording.label, log_tail, no_change, topology.node_rows, status_tone, wording.verdict_word,
    wording.check_sign, change_history.change_size, triage.change_factor, change_step_svg,
    triage.impact_extent, triage.impact_word, wording.times, entry_changes, entry_commits,
    entry_location, entry_subject,
    change_history.size_interval, series_wording.latest_value, levels_text,
    series_wording.value_range,
    threads.affinity_cpus, threads.affinity_text, command_comment, intervals.effect_ticks,
    threads.cpus_text, claim_command, claim_verdict, is_peak_plausible, throughput, long_names,
    configurations.launches_text, configurations.over_launches,
    configurations.too_short_note, settled_text, vertical_ticks, fix_of,
)  # fmt: skip
_CALLED = (
    suggested_commands.cell_command, intervals.change_svg, intervals.class_svg, effect_tint,
    commits.commit_bars_svg, lines.curves_svg, suggested_commands.deciding_command,
    intervals.effect_svg, history.history_svg, suggested_commands.import_command,
    intervals.interval_svg, suggested_commands.latest_command,
    suggested_commands.launch_command, launch_counts, launches.launches_svg, metric_of,
    launches.lane_svg, commits.presence_svg, suggested_commands.original_command, peak_share_text,
    suggested_commands.reproduce_command, suggested_commands.series_command,
    history.sparkline_svg, wording.spread_bounds, intervals.spark_svg, intervals.table_axis,
    intervals.table_ticks, cpu_time.cpu_time_svg, topology.topology_html, lines.trace_svg,
    status_of, suggested_commands.triage_commands,
)  # fmt: skip


def _named(functions: Iterable[Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    return {function.__name__: function for function in functions}


# Templates get the objects of the analysis, and turn their values into text with these.
FILTERS: dict[str, Callable[..., str]] = {
    # Layout of text.
    "with_units": _with_units,
    "keep_together": keep_together,
    "soft_break": soft_break,
    "nowrap": nowrap,
    # Values with their units; a dash for None.
    **{name: _or_dash(write) for name, write in _FORMATS.items()},
    "written": _or_dash(lambda value, kind: _FORMATS[kind](value)),
    "number": _or_dash(_number),
    "ratio": _or_dash(units.ratio),
    "speedup": _or_dash(wording.speedup),
    "relative_speed": _or_dash(wording.relative_speed),
    "day": _or_dash(wording.day),
    # Ranges; nothing for None.
    "interval": _interval,
    "span": _span,
    "open_note": wording.open_note,
    "comparison_interval": wording.compared_bounds,
    "speed_bounds": lambda interval: wording.speed_bounds(*interval.ends),
    # Names, counts, and addresses from the site's top: `3|count_of("launch", "launches")`.
    **_named(_NAMES_AND_ADDRESSES),
    "count_of": wording.count,
    "commit_title": _or_dash(commit_title),
}


class Renderer:
    """Renders pages with one set of templates, each compiled once.

    Attributes:
        navigation: The paths of the parts of the site, which every page links.
        preview: The absolute address of the image for link previews; empty if unknown.
    """

    def __init__(
        self,
        templates: Mapping[str, str],
        *,
        now: str = "",
        records: str = "",
        only: Sequence[str] = (),
        bytecode_cache: BytecodeCache | None = None,
    ) -> None:
        """Load templates by file name.

        Args:
            now: ISO timestamp of the pages.
            only: The names, or patterns of names, that the site is of; empty for everything. Every
                page says so, because a reader may arrive at any page.
            records: The folder of records that commands have to name.
            bytecode_cache: The cache of compiled templates; None: no cache.
        """
        self.navigation: Mapping[Part, str] = {}
        self.preview = ""
        self._only = only
        self._environment = Environment(
            loader=DictLoader(dict(templates)),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            finalize=_mark_missing,
            bytecode_cache=bytecode_cache,
        )
        self._environment.filters.update(
            FILTERS,
            **_named(_FILTERED),
            command_lines=partial(_command_lines, records=records),
            plan_command=lambda cell, result: suggested_commands.plan_command(result, cell.cell),
            steady_state=steady_state_text,
        )
        self._environment.globals.update(
            **_named(_CALLED),
            only=only,
            now=now,
            no_binding_mode=change_history.NO_BINDING_MODE,
        )

    @property
    def shared(self) -> str:
        """What all pages show of the site: a page that is kept was made with the same."""
        return " ".join((*self.navigation.values(), self.preview, *self._only))

    def page(self, kind: Kind, page: object) -> str:
        """A page of this kind, rendered from its model."""
        template = self._environment.get_template(_TEMPLATES.get(kind, f"{kind}.html"))
        section, current = _PARTS.get(kind, ("", ""))
        text = template.render(
            page=page,
            navigation=self.navigation,
            preview=self.preview,
            section=section,
            current=current,
            # The main page of a part of the site is at its top, others are in folders.
            root="../" if current == "true" else "",
        )
        return _UNWRITABLE.sub("�", text)
