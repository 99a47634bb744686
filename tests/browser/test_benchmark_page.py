"""The page of one benchmark in a browser."""

from pathlib import Path

import pytest

from browser.pages import DESK, PHONE, UNFOLD, Scheme, Windows, violations
from corebound.records.history import HistoryPoints, Series
from corebound.report import site
from corebound.report.inputs import SiteInputs
from corebound.report.urls import benchmark_file, series_anchor
from support import needs
from support.build import a_point, a_series
from support.report_sample import NOW

pytestmark = [pytest.mark.browser, needs.chromium, needs.libatomic]
ENVIRONMENT = "environment=conda-py3.7-astropy-bqplot0.12.6-catboost-certifi2019.6.16-cython"
PAGES = (benchmark_file("p", "suite.Case.time_it"), "history.html")
LAST_WITHOUT_A_CHART = 69


def a_cell(n: int, *, nights: int = 3, host: str = "box", figure: float | None = 1e6) -> Series:
    points = HistoryPoints.of(
        a_point(figure, day=night, missing=None if figure else "it failed")
        for night in range(nights)
    )
    return a_series(
        [], project="p", scenario="suite.Case.time_it", title="suite.Case.time_it", host=host,
        host_name=host, cell=f"(m, n)={n}, 5,{ENVIRONMENT}", points=points,
        unit="particles / second", commit_url="https://example.org/owner/project/commit/",
        reproduce=("asv", "run", "--bench", "^suite"),
    )  # fmt: skip


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    cells = [
        *(a_cell(n, nights=40) for n in range(70)),
        a_cell(1, nights=4, host="a-machine-that-stopped"),
        a_cell(2, nights=1, host="a-machine-that-stopped"),
        *(a_cell(n, host="a-machine-of-null", figure=None) for n in range(30)),
    ]
    site.write(SiteInputs(records=[], now=NOW, series=cells), folder)
    return folder


@pytest.fixture(params=[PHONE, DESK])
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


# Axe takes seconds for so many cells. Colours do not depend on the width and places do not on the
# scheme, so each width and each scheme is looked at once.
@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "dark"), (DESK, "light")])
@pytest.mark.parametrize("name", PAGES)
def test_no_cell_scrolls_sideways_or_has_an_axe_violation(
    windows: Windows, sites: Path, name: str, width: int, scheme: Scheme
) -> None:
    page = windows.open(sites / name, width=width, scheme=scheme)
    page.evaluate(UNFOLD)

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == ""


def test_a_link_to_a_cell_without_a_chart_opens_its_table(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / "index.html")
    place = series_anchor(a_cell(LAST_WITHOUT_A_CHART))

    page.goto(f"{(sites / PAGES[0]).as_uri()}#{place}")

    assert page.locator(f"#{place}").is_visible()


def test_the_points_behind_a_chart_have_room_beside_other_charts(
    windows: Windows, sites: Path, width: int
) -> None:
    page = windows.open(sites / PAGES[0], width=width)
    points = page.locator("figure details").first
    points.locator("summary").first.click()

    frame = points.locator(".scroll")

    assert frame.evaluate("node => node.scrollWidth - node.clientWidth") <= 0
