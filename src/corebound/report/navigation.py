"""The navigation of every page: links to the parts of the site, and the news at one of them."""

from collections.abc import Container, Sequence
from typing import Literal, get_args

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.host_records import Record
from corebound.analysis.wording import count
from corebound.report.urls import host_file

Part = Literal["Overview", "Scenarios", "History", "Compare", "Hosts", "Claims", "Operators"]
PARTS: tuple[Part, ...] = get_args(Part)
_PATHS: dict[Part, str] = {
    "Scenarios": "index.html#scenarios",
    "History": "history.html",
    "Compare": "compare.html",
    "Claims": "claims.html",
    "Operators": "operators.html",
}


def navigation_links(records: Sequence[Record], parts: Container[Part]) -> dict[Part, str]:
    """The path of the main page of each part that the site has, from the site's top.

    Args:
        records: Every run with its launches; a single host is linked directly.
        parts: The parts that exist, except for the overview and hosts.
    """
    hosts = {run.host.id for run, _ in records}
    paths: dict[Part, str] = {"Overview": "index.html"}
    paths |= {name: path for name, path in _PATHS.items() if name in parts}
    if hosts:
        paths["Hosts"] = host_file(*hosts) if len(hosts) == 1 else "hosts.html"
    return {name: paths[name] for name in PARTS if name in paths}


def news_rule(history: ChangeHistory) -> str:
    """The CSS that shows at History how many series have new regressions; empty without any.

    It is part of the stylesheet and not of the pages: the number changes with every nightly run,
    and pages of old runs and of unchanged benchmarks are not written again.
    """
    number = len({change.series.id for change in history.news if change.is_regression})
    if not number:
        return ""
    # A browser that does not know alternative text skips the second value.
    read_out = f", {count(number, 'series', 'series')} with new regressions"
    return f'.news::after {{ content: "{number}"; content: "{number}" / "{read_out}"; }}\n'
