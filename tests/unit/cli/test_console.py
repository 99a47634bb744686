"""Standard output and error neutralise what a terminal or a CI service would execute."""

import io
import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.table import Table
from rich.text import Text

from corebound.cli.app import main
from corebound.cli.output import console, streams
from corebound.cli.output.json import indented_json
from support.build import a_launch, a_machine, a_run, write_records

PIECES = st.sampled_from(
    [":", "::", "##", "[", "\n", "\r", "\t", " ", "\x1b[2J", "\x9b", "\u202e", "\u2028", "a", "é"]
)


OBEYED = re.compile(r"[^\n\t\x20-\x7e\xa1-\u1fff\u2190-\ud7ff]|(?m:^)[ \t]*::|##\w*\[")


def printed(*texts: str) -> str:
    """What comes of texts that are written one after the other."""
    stream = io.StringIO()
    wrapped = streams.Stream(stream, "standard output")
    for text in texts:
        wrapped.write(text)
    return stream.getvalue()


def table_text(width: int) -> list[str]:
    """A table of two rows as a terminal of this width shows it."""
    table = Table(box=None, padding=(0, 1))
    for heading in ("threads, binding", "median", "verdict"):
        table.add_column(heading)
    table.add_row("1, physical-cores", "1.50 ms", "= equivalent; 1 launch left out")
    table.add_row("2, none", "2.50 ms", "")
    stream = io.StringIO()
    console.print_table(table, console.Console(file=stream, width=width))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_a_table_that_is_too_wide_has_a_line_for_each_value() -> None:
    assert table_text(30) == [
        "threads, binding",
        "1, physical-cores",
        "  median: 1.50 ms",
        "  verdict: = equivalent; 1",
        "  launch left out",
        "2, none",
        "  median: 2.50 ms",
    ]


@given(texts=st.lists(st.lists(PIECES, max_size=6).map("".join), max_size=4))
def test_no_output_is_executed_by_a_terminal_or_a_ci_service(texts: list[str]) -> None:
    # One that is split over two writes is of the program, not of a text.
    whole = [f"{text}\n" for text in texts]

    assert not OBEYED.search(printed(*whole))


def test_a_table_shows_markup_and_sequences_as_text_and_keeps_its_own_styles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", streams.Stream(stream, "standard output"))
    terminal = console.Console(force_terminal=True, color_system="standard", width=60)
    table = Table(title="[/x]\x1b[2J", box=None)
    table.add_column("[bold]:smile:")
    table.add_row("::error::a")
    table.add_row(Text("b\x1b]0;c\x07", "red"))

    terminal.print(table)

    shown = stream.getvalue()
    assert set(re.findall(r"\x1b[^m]*m", shown)) <= {
        "\x1b[0m", "\x1b[1m", "\x1b[3m", "\x1b[31m",
    }  # fmt: skip
    assert "\x1b[31mb ]0;c" in shown
    assert "[/x] [2J" in shown
    assert "[bold]:smile:" in shown
    assert ": :error::a" in shown


@given(text=st.one_of(st.lists(PIECES).map("".join), st.text()))
def test_neutralised_json_has_the_same_values(text: str) -> None:
    document = indented_json({"text": text})

    assert json.loads(document) == {"text": text}
    assert not re.search(r"##\w*\[|(?m:^)\s*::", document)
    assert document.replace("\n", "").isprintable()


def test_characters_missing_from_the_encoding_are_escaped() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    streams.Stream(stream, "standard output").write("é 1.2×")
    stream.flush()

    stream.seek(0)
    assert stream.read() == r"\xe9 1.2\xd7"


EVIL = "a\x1b[2J\r\n::error::b\n  ::warning::\n##[error]c ##vso[d]\x9b1m\u202ee\x07"


@pytest.mark.parametrize("words", [("compare", EVIL, "b"), ("check", EVIL), ("report", EVIL)])
def test_text_quoted_in_errors_is_neutralised(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["corebound", *words])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    assert not OBEYED.search(capsys.readouterr().err)


@pytest.mark.parametrize("form", [(), ("--json",), ("--format", "md")])
def test_text_from_records_is_neutralised(
    form: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number in (1, 2):
        run = a_run(run_id=f"run{number:02}", host=a_machine(name=EVIL))
        source = replace(run.scenarios[0], path=EVIL)
        run = replace(run, scenarios=(source,), corebound=EVIL)
        launches = [a_launch(block=block, run=run.id, log=EVIL, reason=EVIL) for block in range(3)]
        write_records(tmp_path, run, *launches)
    monkeypatch.setattr(
        sys, "argv", ["corebound", "compare", "run01", "run02", "--records", str(tmp_path), *form]
    )

    with pytest.raises(SystemExit) as ended:
        main()

    said = capsys.readouterr()
    assert ended.value.code == 0, said.err
    assert said.out
    assert not OBEYED.search(said.out + said.err)
