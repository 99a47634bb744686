"""What others show of the site: a badge for each scenario, and the image of a link preview."""

import io
import textwrap
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.change_history import ChangeHistory, change_size
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.wording import Tone, VerdictWord, full_name, plain, speedup
from corebound.report.elements import Content, Hero

# White text on each has a contrast above 4.5.
_COLOURS: dict[Tone, str] = {
    "good": "#0059a6",
    "bad": "#a83c06",
    "warn": "#7a5000",
    "plain": "#59636e",
}
_INK, _SOFT, _PAPER = "#14171b", "#4a525b", "#fdfdfb"

_LONGEST_NAME, _LONGEST_MESSAGE = 40, 60
# A character of Verdana at 11 pixels on average; `textLength` makes other fonts as wide.
_CHARACTER_PX = 6.6
_PADDING_PX = 8


def badge_message(result: ScenarioResult, history: ChangeHistory) -> VerdictWord:
    """What a badge says of a scenario: its worst new regression, else its largest effect.

    Args:
        result: The scenario's latest result.
    """
    all_series = history.histories_of(result.scenario.name)
    worse = [
        change
        for series in all_series
        for change in history.changes_of(series)
        if change.is_regression and history.is_news(change)
    ]
    if worse:
        worst = max(worse, key=lambda change: abs(change.change_point.ratio - 1))
        size = change_size(worst)
        return VerdictWord(tone="bad", sign="▼", word=f"{size.word} since {worst.since[:10]}")
    if (winner := result.winner) is not None:
        ratio = speedup(winner.comparison.speedup_ratio)
        word = f"{ratio} faster: {full_name(winner.cell.cell)}"
        return VerdictWord(tone="good", sign="▲", word=word)
    return VerdictWord(
        tone="plain", sign="", word="no regression" if all_series else "no clear difference"
    )


def badge(result: ScenarioResult, history: ChangeHistory) -> Content:
    """The badge of a scenario: its name, and beside it a message on the colour of its tone.

    What is long is cut.

    Args:
        result: The scenario's latest result.
    """
    message = badge_message(result, history)
    name = _cut(result.scenario.title, _LONGEST_NAME)
    message = replace(message, word=_cut(message.word, _LONGEST_MESSAGE))
    return Content(
        name=name,
        word=message.word,
        said=message.text,
        colour=_COLOURS[message.tone],
        left_px=_width_px(name),
        right_px=_width_px(message.text),
    )


def _width_px(text: str) -> int:
    """The width of a text with its padding."""
    return round(len(text) * _CHARACTER_PX) + 2 * _PADDING_PX


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


# What the Open Graph protocol's largest consumers show without cutting it.
WIDTH, HEIGHT = 1200, 630
_MARGIN_PX = 80


class Line(Struct, frozen=True, kw_only=True):
    """A line of the image: its text, its baseline and size in pixels, and its colour."""

    text: str
    y: int
    size: int
    colour: str


def image_lines(hero: Hero) -> Iterator[Line]:
    """The verdict of a page and what it is based on, as lines that fit."""
    yield Line(text="corebound", y=110, size=34, colour=_SOFT)
    y = 120
    for text in _wrapped(hero.says, 32):
        y += 78
        yield Line(text=text, y=y, size=66, colour=_INK)
    y += 20
    for text in _wrapped(plain(hero.support), 76):
        y += 40
        if y < HEIGHT - 20:
            yield Line(text=text, y=y, size=28, colour=_SOFT)


def _wrapped(text: str, width: int) -> list[str]:
    """The first four lines of a text; the last one ends in `…` if there is more."""
    # `placeholder` is textwrap's word for that ending.
    return textwrap.wrap(text, width, max_lines=4, placeholder="…")


def can_draw() -> bool:
    """Whether Pillow is installed, which is optional."""
    return find_spec("PIL") is not None


def share_image(hero: Hero) -> bytes | None:
    """The image of a link preview as PNG: lines beside a bar in the colour of the verdict.

    None without Pillow, which brings the font, so that every host draws the same bytes.
    """
    if not can_draw():
        return None
    draw, fonts, images = (
        import_module(f"PIL.{name}") for name in ("ImageDraw", "ImageFont", "Image")
    )
    kinds = {span.kind for span in hero.verdict}
    tone: Tone = "bad" if "bad" in kinds else "good" if "good" in kinds else "plain"
    canvas = images.new("RGB", (WIDTH, HEIGHT), _PAPER)
    pen = draw.Draw(canvas)
    pen.rectangle((0, 0, 23, HEIGHT), fill=_COLOURS[tone])
    for line in image_lines(hero):
        font = fonts.load_default(line.size)
        pen.text((_MARGIN_PX, line.y), line.text, fill=line.colour, font=font, anchor="ls")
    data = io.BytesIO()
    canvas.save(data, "PNG", optimize=True)
    return data.getvalue()
