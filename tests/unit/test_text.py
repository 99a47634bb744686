"""Foreign text is inert in terminals, Markdown, chats, XML, spreadsheets and paths."""

import csv
import html
import io
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.markdown import Markdown

from corebound import text as corebound_text
from support.markup import parse_xml

# The meaning of a mark depends on its neighbours.
TEXTS = st.text(st.one_of(st.sampled_from("\\`*_[]<>()|~#&@!$:/.-+=\n\r\x1b a1;"), st.characters()))


def test_a_line_has_no_control_or_hidden_characters() -> None:
    assert corebound_text.one_line("fix\x1b[2J\r\n\x9b1A\u202eend µs") == "fix [2J   1A end µs"


@given(text=TEXTS)
def test_markdown_shows_the_text_and_nothing_else(text: str) -> None:
    (_, line, _) = Markdown(f"a{corebound_text.markdown(text)}b").parsed
    pieces = line.children or []

    assert {piece.type for piece in pieces} <= {"text", "html_inline"}
    assert {piece.content for piece in pieces if piece.type == "html_inline"} <= {"<!-- -->"}
    shown = "".join(piece.content for piece in pieces if piece.type == "text")
    assert shown == f"a{corebound_text.one_line(text)}b"


@given(text=TEXTS)
def test_text_does_not_end_a_column_of_a_markdown_table(text: str) -> None:
    table = f"| a | b |\n|---|---|\n| {corebound_text.markdown(text)} | end |"

    columns = [token for token in Markdown(table).parsed if token.type == "td_open"]

    assert len(columns) == 2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("@team", r"\@<!-- -->team"),
        ("mail me@example.org", r"mail me\@<!-- -->example.org"),
        ("other/repository#7", r"other/repository\#<!-- -->7"),
        # These notify nobody, so they need no comment.
        ("a @ b, C# and #", r"a \@ b, C\# and \#"),
    ],
)
def test_markdown_notifies_nobody(text: str, shown: str) -> None:
    assert corebound_text.markdown(text) == shown


@given(text=TEXTS)
def test_a_chat_shows_the_text_and_no_markup(text: str) -> None:
    sent = corebound_text.chat(text)

    assert not {"<", ">"} & {*sent}
    assert html.unescape(sent).replace("\u2060", "") == text.replace("\u2060", "")


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("<!channel> <@U024BE7LH>", "&lt;!channel&gt; &lt;@\u2060U024BE7LH&gt;"),
        ("@here and (@all)", "@\u2060here and (@\u2060all)"),
        # These notify nobody, and are of no use in two pieces.
        ("me@example.org https://box/@me", "me@example.org https://box/@me"),
    ],
)
def test_a_chat_notifies_nobody_and_hides_no_address(text: str, sent: str) -> None:
    assert corebound_text.chat(text) == sent


@given(text=TEXTS)
def test_xml_of_any_text_can_be_parsed(text: str) -> None:
    element = ET.Element("a", title=corebound_text.xml(text))
    element.text = corebound_text.xml(text)

    read = parse_xml(ET.tostring(element, encoding="unicode"))

    # XML normalises line ends.
    assert (read.text or "").splitlines() == corebound_text.xml(text).splitlines()


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_spreadsheet_reads_no_text_as_a_formula(text: str) -> None:
    assert corebound_text.spreadsheet(text) == f"'{text}"


@given(value=st.one_of(st.none(), st.booleans(), st.integers(), st.floats()))
def test_values_that_are_not_text_are_unchanged(value: object) -> None:
    assert corebound_text.spreadsheet(value) is value


@given(text=TEXTS.filter(lambda text: "\x00" not in text))
def test_no_csv_field_starts_like_a_formula(text: str) -> None:
    written = io.StringIO()
    csv.writer(written).writerow([corebound_text.spreadsheet(text), "end"])

    first, end = next(csv.reader(io.StringIO(written.getvalue(), newline="")))

    assert first[:1] not in {"=", "+", "-", "@", "\t", "\r"}
    assert (first.removeprefix("'"), end) == (text.removeprefix("'"), "end")


@given(first=st.text(), second=st.text())
def test_a_path_component_stays_in_its_folder_and_is_unique(first: str, second: str) -> None:
    component = corebound_text.path_component(first)

    assert (Path("/folder") / component).parent == Path("/folder")
    assert component not in {"", ".", ".."}
    assert not component.startswith("-")
    assert len(component.encode()) < 200
    assert (component == corebound_text.path_component(second)) == (first == second)
