"""How results show themselves: as text with `print` and in a console, as a table in a notebook."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import ClassVar

from msgspec import Struct

from corebound.text import one_line

# The colours and the marks of the site (reports/assets/site.css), for elements of this class only.
_STYLE = """
.corebound { color-scheme: light; --ink: light-dark(#14171b, #e9ecef);
  --soft: light-dark(#4a525b, #aab2bb); --line: light-dark(#dcdfe2, #2b3137);
  --band: light-dark(#e3e6e8, #272d34); --good: light-dark(#0059a6, #6bb2ff);
  --bad: light-dark(#a83c06, #ff935e); color: var(--ink); max-width: 60rem; overflow-x: auto;
  font: 0.875rem/1.4 system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
[data-jp-theme-light="false"] .corebound, .vscode-dark .corebound, [data-theme="dark"] .corebound {
  color-scheme: dark; }
.corebound p { margin: 0 0 0.4rem; color: var(--soft); }
.corebound p b { color: var(--ink); font-weight: 600; }
.corebound table { border-collapse: collapse; width: 100%; margin: 0 0 1rem; font-size: inherit;
  color: inherit; table-layout: auto; }
.corebound :is(td, th) { text-align: right; padding: 0.3rem 0.6rem; white-space: nowrap;
  border-bottom: 1px solid var(--line); font-weight: 400; vertical-align: middle;
  background: none; }
.corebound th { color: var(--soft); }
.corebound :is(td, th):first-child { text-align: left; white-space: normal; }
.corebound .verdict small { display: block; white-space: normal; max-width: 12rem;
  margin-left: auto; }
.corebound .texts :is(td, th) { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.corebound small { color: var(--soft); font-size: 0.8125rem; }
.corebound .plot, .corebound .axis { min-width: 12rem; width: 40%; padding-inline: 0; }
.corebound .axis { position: relative; height: 1.4rem; }
.corebound .axis span { position: absolute; bottom: 0.1rem; transform: translateX(-50%); }
.corebound .axis .minor { display: none; }
.corebound svg { display: block; width: 100%; height: 2.1rem; overflow: visible; }
.corebound svg path { fill: none; vector-effect: non-scaling-stroke; }
.corebound svg .good { --mode: var(--good); }
.corebound svg .bad { --mode: var(--bad); }
.corebound svg .plain { --mode: var(--soft); }
.corebound svg :is(.ci, .est, .run) { stroke: var(--mode); }
.corebound svg .ci { stroke-width: 3; }
.corebound svg .est { stroke-width: 11; stroke-linecap: round; }
.corebound svg .run { stroke-width: 4; stroke-linecap: round; opacity: 0.42; }
.corebound svg .one { stroke: var(--ink); }
.corebound svg .grid { stroke: var(--line); }
.corebound svg path.noise { fill: var(--band); }
.corebound .good { color: var(--good); }
.corebound .bad { color: var(--bad); }
"""


class Shown(Struct, frozen=True, kw_only=True):
    """A result that shows a headline and a table, instead of its fields with all their data."""

    # The attributes that a table shows: of each row if the result consists of rows, else its own.
    shown: ClassVar[tuple[str, ...]] = ()

    def heading(self) -> str:
        """The result in a sentence; empty if the table says it all."""
        return ""

    def table(self) -> tuple[Sequence[str], list[tuple[str, ...]]]:
        """The headings of the columns, and the texts of each row."""
        if isinstance(self, Iterable):
            return self.shown, [
                tuple(_text(getattr(row, name)) for name in self.shown) for row in self
            ]
        return ("", ""), [(name, _text(getattr(self, name))) for name in self.shown]

    def __str__(self) -> str:
        """The headline, and the table with its columns aligned."""
        headings, rows = self.table()
        lines = [*([tuple(headings)] if any(headings) and rows else []), *rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        aligned = ("  " + "  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
        return "\n".join(filter(None, (self.heading(), *aligned)))

    def __repr__(self) -> str:
        """The same as text."""
        return str(self)

    def _repr_html_(self) -> str:
        headings, rows = self.table()
        return _table_html(self.heading(), headings, rows)


def _text(value: object) -> str:
    """A value of an attribute in one line; a dash if there is none."""
    return one_line("; ".join(_parts(value))) or "–"


def _parts(value: object) -> Iterator[str]:
    match value:
        case None:
            pass
        case float():
            yield f"{value:.4g}"
        case Struct():
            fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
            yield ", ".join(f"{name} {_text(field)}" for name, field in fields)
        case Mapping():
            yield ", ".join(f"{name}={_text(field)}" for name, field in value.items())
        case str() | int():
            yield str(value)
        case Iterable():
            yield from (" ".join(_parts(part)) for part in value)
        case _:
            yield str(value)


def _table_html(heading: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Any result as a table of texts; line ends of the heading are kept."""
    head = f'<p style="white-space:pre-line"><b>{escape(heading)}</b></p>' if heading else ""
    titles = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in headings)
    top = f"<thead><tr>{titles}</tr></thead>" if any(headings) else ""
    cells = ("".join(f"<td>{escape(text)}</td>" for text in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return in_notebook(f'{head}<table class="texts">{top}<tbody>{body}</tbody></table>')


def in_notebook(content: str) -> str:
    """HTML with the look of the site, for the output of a notebook's cell."""
    return f'<div class="corebound"><style>{_STYLE}</style>{content}</div>'
