"""One table, as a terminal and as Markdown show it."""

import io

from corebound.cli.output.console import Console
from corebound.cli.output.sections import print_sections
from corebound.present.markdown import markdown
from corebound.present.sections import Column, Duration, Item, Items, Named, Sentence, Table

SECTIONS = (
    Sentence("Two | hosts", "lead"),
    Table(
        title="Hosts",
        columns=(
            Column("host"),
            Column("trend", "drawing"),
            Column("time", "number"),
            Column("CPU time", page_only=True),
            Column("differs in"),
        ),
        rows=(
            (
                Named("a\nb", tags=("outlier",), note="xeon"),
                "",
                Duration(2e6),
                "",
                Items((Item("kernel", "6.1", "others 6.8"), Item("SMT", "on")), most=1),
            ),
        ),
        notes=("One was not compared.",),
    ),
)


def test_a_terminal_has_what_a_page_does_not_draw() -> None:
    out = io.StringIO()

    print_sections(SECTIONS, Console(file=out, width=80))

    assert [" ".join(line.split()) for line in out.getvalue().splitlines()] == [
        "Two | hosts",
        "",
        "Hosts",
        "host time differs in",
        "a b (outlier, xeon) 2.00 ms kernel 6.1 (others 6.8) and 1 more",
        "One was not compared.",
    ]


def test_markdown_has_the_same_and_is_literal() -> None:
    assert markdown(SECTIONS).splitlines() == [
        r"**Two \| hosts**",
        "",
        "### Hosts",
        "",
        "| host | time | differs in |",
        "| --- | --: | --- |",
        "| a b (outlier, xeon) | 2.00 ms | kernel 6.1 (others 6.8) and 1 more |",
        "",
        "One was not compared.",
    ]
