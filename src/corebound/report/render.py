"""Page models in, HTML out: templates arrange, charts draw, everything foreign is escaped."""

from __future__ import annotations

from collections.abc import Mapping

from jinja2 import DictLoader, Environment, StrictUndefined

from corebound.report.charts.interval import interval_svg, spark_svg
from corebound.report.charts.percentiles import percentiles_svg
from corebound.report.charts.strip import strip_svg
from corebound.report.charts.trace import trace_svg
from corebound.report.view.claims import ClaimsPage
from corebound.report.view.operators_page import OperatorsPage
from corebound.report.view.overview import OverviewPage
from corebound.report.view.page import ScenarioPage


class Renderer:
    """Renders pages with one set of templates, each compiled once."""

    def __init__(self, templates: Mapping[str, str]) -> None:
        """Take templates by file name."""
        self._environment = Environment(
            loader=DictLoader(dict(templates)),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self._environment.globals.update(
            interval_svg=interval_svg,
            percentiles_svg=percentiles_svg,
            spark_svg=spark_svg,
            strip_svg=strip_svg,
            trace_svg=trace_svg,
        )

    def overview(self, page: OverviewPage) -> str:
        """The site's first page."""
        return self._environment.get_template("overview.html").render(page=page)

    def claims(self, page: ClaimsPage) -> str:
        """The page of all published claims."""
        return self._environment.get_template("claims.html").render(page=page)

    def operators(self, page: OperatorsPage) -> str:
        """The page of all operator profiles."""
        return self._environment.get_template("operators.html").render(page=page)

    def scenario(self, page: ScenarioPage) -> str:
        """A scenario's page."""
        return self._environment.get_template("scenario.html").render(page=page)
