"""Text of others, wherever it is shown: it stays what it is, and does nothing."""

from __future__ import annotations

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

# What marks mean is decided by what stands about them.
TEXTS = st.text(st.one_of(st.sampled_from("\\`*_[]<>()|~#&@!$:/.-+=\n\r\x1b a1;"), st.characters()))


def test_a_line_obeys_no_terminal_and_hides_nothing() -> None:
    assert corebound_text.one_line("fix\x1b[2J\r\n\x9b1A\u202eend µs") == "fix [2J   1A end µs"


@given(text=TEXTS)
def test_markdown_shows_the_text_and_nothing_else(text: str) -> None:
    (_, line, _) = Markdown(f"a{corebound_text.markdown(text)}b").parsed
    pieces = line.children or []

    assert {one.type for one in pieces} <= {"text", "html_inline"}
    assert {one.content for one in pieces if one.type == "html_inline"} <= {"<!-- -->"}
    shown = "".join(one.content for one in pieces if one.type == "text")
    assert shown == f"a{corebound_text.one_line(text)}b"


@given(text=TEXTS)
def test_a_column_of_a_markdown_table_ends_where_it_ends(text: str) -> None:
    table = f"| a | b |\n|---|---|\n| {corebound_text.markdown(text)} | end |"

    columns = [one for one in Markdown(table).parsed if one.type == "td_open"]

    assert len(columns) == 2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("@team", r"\@<!-- -->team"),
        ("mail me@example.org", r"mail me\@<!-- -->example.org"),
        ("other/repository#7", r"other/repository\#<!-- -->7"),
        # Nobody is called, so that nothing need stand between.
        ("a @ b, C# and #", r"a \@ b, C\# and \#"),
    ],
)
def test_nobody_is_called_whose_name_stands_in_it(text: str, shown: str) -> None:
    assert corebound_text.markdown(text) == shown


@given(text=TEXTS)
def test_a_chat_shows_the_text_and_obeys_none_of_it(text: str) -> None:
    sent = corebound_text.chat(text)

    assert not {"<", ">"} & {*sent}
    assert html.unescape(sent).replace("\u2060", "") == text.replace("\u2060", "")


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("<!channel> <@U024BE7LH>", "&lt;!channel&gt; &lt;@\u2060U024BE7LH&gt;"),
        ("@here and (@all)", "@\u2060here and (@\u2060all)"),
        # These call nobody, and are of no use in two pieces.
        ("me@example.org https://box/@me", "me@example.org https://box/@me"),
    ],
)
def test_a_chat_calls_nobody_and_hides_no_address_behind_words(text: str, sent: str) -> None:
    assert corebound_text.chat(text) == sent


@given(text=TEXTS)
def test_xml_of_it_can_be_read(text: str) -> None:
    element = ET.Element("a", said=corebound_text.xml(text))
    element.text = corebound_text.xml(text)

    read = parse_xml(ET.tostring(element, encoding="unicode"))

    # XML knows one end of a line.
    assert (read.text or "").splitlines() == corebound_text.xml(text).splitlines()


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_spreadsheet_takes_no_text_for_a_formula(text: str) -> None:
    assert corebound_text.spreadsheet(text) == f"'{text}"


@given(value=st.one_of(st.none(), st.booleans(), st.integers(), st.floats()))
def test_what_is_no_text_stays_what_it_is(value: object) -> None:
    assert corebound_text.spreadsheet(value) is value


@given(text=TEXTS.filter(lambda text: "\x00" not in text))
def test_no_field_of_csv_begins_as_a_formula_does(text: str) -> None:
    written = io.StringIO()
    csv.writer(written).writerow([corebound_text.spreadsheet(text), "end"])

    first, end = next(csv.reader(io.StringIO(written.getvalue(), newline="")))

    assert first[:1] not in {"=", "+", "-", "@", "\t", "\r"}
    assert (first.removeprefix("'"), end) == (text.removeprefix("'"), "end")


@given(one=st.text(), other=st.text())
def test_a_component_stays_in_its_folder_and_tells_texts_apart(one: str, other: str) -> None:
    made = corebound_text.path_component(one)

    assert (Path("/folder") / made).parent == Path("/folder")
    assert made not in {"", ".", ".."}
    assert not made.startswith("-")
    assert len(made.encode()) < 200
    assert (made == corebound_text.path_component(other)) == (one == other)
