"""What others show of a site: badges, and the images of link previews."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.analysis.change_history import EMPTY_HISTORY, build_change_history
from corebound.analysis.scenario_result import ScenarioResult, analyse_scenario
from corebound.analysis.wording import TextSpan, rich
from corebound.report import sharing, site
from corebound.report.elements import Hero
from corebound.report.inputs import SiteInputs
from corebound.report.sharing import HEIGHT, badge_message, can_draw, image_lines, share_image
from corebound.scenario.matrix import expand
from support.build import a_launch, a_run, a_scenario, a_series
from support.markup import parse_html, parse_xml
from support.report_sample import NOW, a_sample, pages_of, small_nights

EVIL = "<script>alert(1)</script> & co"
STEADY = [1e6 * (1 + night % 3 / 500) for night in range(60)]
SLOWER = [value * (1.2 if night > 40 else 1.0) for night, value in enumerate(STEADY)]


def result_of_sample() -> ScenarioResult:
    run, launches = a_sample()
    return analyse_scenario(run, run.scenarios[0], launches)


def test_a_badge_shows_the_largest_effect() -> None:
    message = badge_message(result_of_sample(), EMPTY_HISTORY)

    assert (message.tone, message.sign) == ("good", "▲")
    assert message.word.startswith("1.4")
    assert "× faster: " in message.word


def test_a_badge_shows_a_new_regression_before_any_other_effect() -> None:
    result = result_of_sample()
    series = a_series(SLOWER, scenario=result.scenario.name, host=result.run.host.id)

    message = badge_message(result, build_change_history([series]))

    # 20 % since the 42nd night after the first of January.
    assert message.tone == "bad"
    assert message.word == "1.20× slower since 2026-02-11"


def test_a_badge_of_a_steady_history_says_so() -> None:
    run, launches = a_sample()
    alone = [launch for launch in launches if launch.cell == launches[0].cell]
    result = analyse_scenario(run, run.scenarios[0], alone)
    series = a_series(STEADY, scenario=result.scenario.name, host=run.host.id)

    messages = [
        badge_message(result, history)
        for history in (build_change_history([series]), EMPTY_HISTORY)
    ]

    assert [message.word for message in messages] == ["no regression", "no clear difference"]


def test_a_badge_is_valid_xml_whatever_a_title_contains() -> None:
    scenario = a_scenario(title=f"{EVIL} {'long ' * 40}")
    launches = [a_launch(cell=cell) for cell in expand(scenario, "a.yaml")]

    made = pages_of([(a_run(scenarios=(scenario,)), launches)])["badge/a-scenario.svg"]

    assert "<script" not in made
    assert parse_xml(made).attrib["aria-label"].startswith("<script>alert(1)</script> & co")
    assert int(parse_xml(made).attrib["width"]) < 800


def a_hero(verdict: str, support: str = "") -> Hero:
    return Hero(
        title="Overview",
        question="",
        context="",
        verdict=rich(verdict),
        support=rich(support),
        flags=(),
    )


def test_the_share_image_holds_the_longest_text() -> None:
    lines = [*image_lines(a_hero("one word after another " * 30, "and the details of it " * 60))]

    assert all(line.y < HEIGHT for line in lines)
    assert max(len(line.text) * line.size for line in lines) < 2_300


def test_the_image_is_drawn_in_the_colour_of_the_verdict() -> None:
    pytest.importorskip("PIL", reason="not installed: pip install 'corebound[share]'")

    drawn = share_image(a_hero("2 benchmarks regressed.", "Since yesterday."))

    assert drawn is not None
    assert drawn.startswith(b"\x89PNG")
    # Width and height are the first two fields of its header (RFC 2083, 11.2.1).
    assert [int.from_bytes(drawn[at : at + 4], "big") for at in (16, 20)] == [1200, 630]
    slower = replace(a_hero("", ""), verdict=rich("2 cells got ", TextSpan("slower", "bad"), "."))
    assert share_image(slower) != share_image(a_hero("2 cells got slower."))


@pytest.mark.parametrize("drawn", [b"\x89PNG", None])
def test_a_link_preview_has_an_image_only_where_its_address_is_known(
    drawn: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "can_draw", lambda: drawn is not None)
    monkeypatch.setattr(site, "share_image", lambda _hero: drawn)
    wanted = {
        "": [],
        "https://example.org/bench/": ["https://example.org/bench/share.png"] if drawn else [],
    }
    for number, (address, images) in enumerate(wanted.items()):
        out = tmp_path / str(number)
        index = site.write(SiteInputs(records=small_nights(1), now=NOW, address=address), out)

        page = parse_html(index.read_text())
        named = {
            each.attributes["property"]: each.attributes["content"]
            for each in page.all("meta")
            if "property" in each.attributes
        }
        assert [content for name, content in named.items() if name == "og:image"] == images
        assert named["og:description"]
        assert (out / "share.png").is_file() == (drawn is not None)


def test_without_pillow_there_is_no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "find_spec", lambda _name: None)

    assert not can_draw()
    assert share_image(a_hero("No change.")) is None
