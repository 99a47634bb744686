"""The navigation of every page: links to the parts of the site, and the news at one of them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Literal, get_args

from msgspec import Struct

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


class NavigationLink(Struct, frozen=True, kw_only=True):
    """A part of the site, and the path of its main page from the site's top."""

    name: Part
    path: str


def navigation_links(
    records: Sequence[Record], parts: Container[Part]
) -> tuple[NavigationLink, ...]:
    """The links to the parts that the site has; the overview is always one of them.

    Args:
        records: Every run with its launches; a single host is linked directly.
        parts: The other parts that exist, except for hosts.
    """
    hosts = {run.host.id for run, _ in records}
    paths: dict[Part, str] = {"Overview": "index.html"}
    paths |= {name: path for name, path in _PATHS.items() if name in parts}
    if hosts:
        paths["Hosts"] = host_file(*hosts) if len(hosts) == 1 else "hosts.html"
    return tuple(NavigationLink(name=name, path=paths[name]) for name in PARTS if name in paths)


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
