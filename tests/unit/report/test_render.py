"""Filters of templates: values with units, missing values, line breaks and code."""

import pytest

from corebound.report.render import FILTERS, Renderer
from corebound.stats.intervals import Interval


@pytest.mark.parametrize(
    ("name", "value", "arguments", "text"),
    [
        ("speedup", 1.4234, (), "1.42×"),
        ("relative_speed", 0.8, (), "1.25× slower"),
        ("duration", 42_300_000, (), "42.3 ms"),
        ("percent", 0.0213, (), "2.1 %"),
        ("whole_percent", 0.0213, (), "2 %"),
        ("bytes", 33_554_432, (), "32 MiB"),
        ("day", "2026-01-02T03:04:05Z", (), "2026-01-02 03:04 UTC"),
        ("interval", Interval(low=1.381, high=1.459, confidence=0.95), (), "1.38–1.46"),
        (
            "interval",
            Interval(low=1.2e6, high=4.56e6, confidence=0.95),
            ("duration",),
            "1.20–4.56 ms",
        ),
        ("span", (0.5, 0.75), ("whole_percent",), "50 … 75 %"),
        ("number", 1_500_000.0, (1e6,), "1.50"),
        ("count_of", 1, ("launch", "launches"), "1 launch"),
    ],
)
def test_a_filter_shows_a_value_with_its_unit(
    name: str, value: object, arguments: tuple[object, ...], text: str
) -> None:
    assert FILTERS[name](value, *arguments) == text


@pytest.mark.parametrize("name", ["speedup", "ratio", "duration", "percent", "bytes", "number"])
def test_a_missing_value_is_a_dash_that_is_read_out_as_a_word(name: str) -> None:
    page = Renderer({"overview.html": f"{{{{ page|{name} }}}}"}).page("overview", None)

    assert page == '<span class="nil">none</span>'


@pytest.mark.parametrize("name", ["interval", "span"])
def test_a_missing_interval_shows_nothing(name: str) -> None:
    assert FILTERS[name](None, "duration") == ""
