"""Page models in, HTML out: templates arrange, charts draw, everything foreign is escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

from jinja2 import BytecodeCache, DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from corebound.analysis.commands import CommandLine
from corebound.report.charts.dots import dots_svg
from corebound.report.charts.history import history_svg, spark_line_svg
from corebound.report.charts.interval import interval_svg, spark_svg
from corebound.report.charts.percentiles import percentiles_svg
from corebound.report.charts.scaling import scaling_svg
from corebound.report.charts.strip import strip_svg
from corebound.report.charts.topology import topology_html
from corebound.report.charts.trace import trace_svg
from corebound.report.charts.tradeoff import trade_svg

Kind = Literal[
    "overview", "scenario", "history", "benchmark", "run", "host", "compare", "claims",
    "operators", "feed",
]  # fmt: skip
# What neither HTML nor XML has a way to write, and a log may hold.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
_TEMPLATES: dict[Kind, str] = {"feed": "feed.xml"}


# A number and its unit stay on one line.
_UNIT = re.compile(
    "(?<=[0-9]) (?=(?:%|ns|µs|ms|s|KiB|MiB|GiB|GHz|MHz|UTC|×)(?![0-9A-Za-z]))|(?<=×) (?=[0-9])"
)


# Where there is no figure a dash is seen and a word is read out: a dash alone is passed over.
_NONE = Markup('<span class="nil">none</span>')


def _told(value: object) -> object:
    return _NONE if value == "–" else value


def _with_units(text: str) -> str:
    return _UNIT.sub("\N{NO-BREAK SPACE}", text)


# Browsers break after the dashes of an option and of a day.
_DASHED = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|[0-9]{4}-[0-9]{2}-[0-9]{2}(?![\w-]))")
_ON_ONE_LINE = Markup('<span style="white-space:nowrap">{}</span>')


def keep_together(text: str) -> Markup:
    """A sentence in which a number with its unit, an option and a day each stay on one line.

    >>> keep_together("run --resume")
    Markup('run <span style="white-space:nowrap">--resume</span>')
    """
    parts = _DASHED.split(_with_units(text))
    return Markup("").join(
        _ON_ONE_LINE.format(part) if at % 2 else part for at, part in enumerate(parts)
    )


# A word of so many characters may break where these signs join two of its parts.
_LONG_WORD = 9
_WORDS = re.compile(r"(\s+)")
_JOINT = re.compile(r"(?<=[._,=])(?![._,=]|$)(?<!(?<=[0-9])[.,](?=[0-9]))")
# Hidden it is: else what is heard has a space there.
_BREAK = Markup('<wbr aria-hidden="true">')


def soft_break(name: str) -> Markup:
    """A name whose long words break where their parts end; it is copied and found as it is.

    >>> soft_break("runner.time_all")
    Markup('runner.<wbr aria-hidden="true">time_<wbr aria-hidden="true">all')
    """
    return Markup("").join(
        _BREAK.join(_JOINT.split(word)) if len(word) >= _LONG_WORD else word
        for word in _WORDS.split(name)
    )


# A unit that is longer may go on the next line.
_SHORT_UNIT = 4
_FIGURES = re.compile(r"(.*[0-9∞\])])( .*|)", re.DOTALL)


def nowrap(figures: str) -> str:
    """Figures in a cell on one line, but for a unit in words, which may go on the next.

    >>> nowrap("28.7 to 44.2 ms").count("\N{NO-BREAK SPACE}")
    3
    >>> nowrap("28.7 to 44.2 % overhead").partition(" ")[2]
    '% overhead'
    """
    found = _FIGURES.fullmatch(figures)
    if found is None or len(found[2]) <= 1 + _SHORT_UNIT:
        return figures.replace(" ", "\N{NO-BREAK SPACE}")
    return found[1].replace(" ", "\N{NO-BREAK SPACE}") + found[2]


def _typed(commands: CommandLine | Sequence[CommandLine], *, records: str) -> str:
    """Commands as they are typed where the records are in this folder, each on its line."""
    several = (commands,) if isinstance(commands, CommandLine) else commands
    return "\n".join(one.at(records) for one in several)


class Renderer:
    """Renders pages with one set of templates, each compiled once."""

    def __init__(
        self,
        templates: Mapping[str, str],
        *,
        records: str = "",
        note: str = "",
        compiled: BytecodeCache | None = None,
    ) -> None:
        """Take templates by file name.

        Args:
            templates: Their texts.
            note: What every page says of the site; empty where that is nothing.
            records: The folder of records as commands have to name it.
            compiled: Where what they are compiled to is kept; None: nowhere.
        """
        self._environment = Environment(
            loader=DictLoader(dict(templates)),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            finalize=_told,
            bytecode_cache=compiled,
        )
        self._environment.filters["with_units"] = _with_units
        self._environment.filters["glued"] = keep_together
        self._environment.filters["breakable"] = soft_break
        self._environment.filters["unbroken"] = nowrap
        self._environment.filters["here"] = partial(_typed, records=records)
        self._environment.globals.update(
            note=note,
            dots_svg=dots_svg,
            history_svg=history_svg,
            interval_svg=interval_svg,
            percentiles_svg=percentiles_svg,
            scaling_svg=scaling_svg,
            spark_line_svg=spark_line_svg,
            spark_svg=spark_svg,
            strip_svg=strip_svg,
            topology_html=topology_html,
            trace_svg=trace_svg,
            trade_svg=trade_svg,
        )

    def page(self, kind: Kind, page: object) -> str:
        """A page of this kind, from the model that its template is for."""
        template = self._environment.get_template(_TEMPLATES.get(kind, f"{kind}.html"))
        return _UNWRITABLE.sub("�", template.render(page=page))
