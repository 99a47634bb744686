"""Text that others wrote, made inert for where it is shown: names, subjects of commits, reasons.

Nothing is lost that a reader needs. What a format escapes by itself (ElementTree, Jinja, csv) is
left to it; here is only what they let through.
"""

from __future__ import annotations

import hashlib
import html
import re

# What Markdown, GitHub or GitLab would take for more than a letter.
_MARKS = re.compile(r"([\\`*_\[\]<>|~#&@!$])")
# Where a name would be called, or another issue told of this one.
_CALLS = re.compile(r"(?<=@)(?=[0-9A-Za-z])|(?<=#)(?=[0-9])")
# The same in a chat, but within addresses of pages and people, which are to stay whole.
_CHAT_CALLS = re.compile(r"(?<![^\s(\[{<\"'`,;:])@(?=[0-9A-Za-z])")
_WORD_JOINER = "\u2060"
# What XML 1.0 has no way to write, not even escaped (§2.2, production 2).
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# What a CI service obeys where it reads it in a log. GitHub: `::` at the start of a line, blanks
# aside, and `##[` anywhere in it (actions/runner, ActionCommand.cs); Azure: `##vso[` anywhere;
# TeamCity: `##teamcity[`.
_COMMAND = re.compile(r"(?m)^(?:[^\S\n]|\x1b\[[\d;]*m)*:(?=:)|#(?=#\w*\[)")
# How a formula begins, also behind what a spreadsheet strips (OWASP, CSV Injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
# What is safe in a file's name everywhere; a tilde, which is safe as well, begins a digest.
_NOT_IN_A_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_COMPONENT = 120


def one_line(text: str) -> str:
    r"""For a terminal, a log or a mail: one line, and nothing that a terminal obeys.

    An escape sequence would hide lines or write others, and so would a line's end or an override
    of the direction; each such character is a space.

    >>> one_line("look\x1b[2J\ntwice")
    'look [2J twice'
    """
    return "".join(letter if letter.isprintable() else " " for letter in text)


def lines(text: str) -> str:
    r"""For a terminal or a log, like `one_line`, where the text may have line ends and tabs.

    >>> lines("a\x1b[2J\n\tb\u202e")
    'a [2J\n\tb '
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(letter if letter in "\n\t" else one_line(letter) for letter in text)


def uncommanded(text: str, *, within_line: bool = False) -> str:
    r"""For the log of a CI service: a space breaks whatever the service would obey.

    Args:
        text: Text of any lines; colours of our own may be in it.
        within_line: Whether something other than blanks precedes the text on its line.

    >>> uncommanded(" ::error::a\n##[group]b"), uncommanded("::", within_line=True)
    (' : :error::a\n# #[group]b', '::')
    """
    if ":" not in text and "#" not in text:
        return text
    # A letter in front makes the start of the text no start of a line.
    before = "." if within_line else ""
    return _COMMAND.sub(lambda found: f"{found[0]} ", before + text)[len(before) :]


def json_text(document: str) -> str:
    r"""For a JSON document, already encoded: the same values, with nothing a terminal obeys.

    A JSON encoder escapes only what is below the space. Everything else here occurs within strings
    alone, where an escape means the same.

    >>> print(json_text('{"a\x9b": "##[error]"}'))
    {"a\u009b": "\u0023#[error]"}
    """
    if not document.replace("\n", "").isprintable():
        document = "".join(
            letter if letter == "\n" or letter.isprintable() else _json_escape(letter)
            for letter in document
        )
    return re.sub(r"#(?=#\w*\[)", r"\\u0023", document)


def _json_escape(letter: str) -> str:
    """A character outside ASCII by its UTF-16 code units (RFC 8259, section 7)."""
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def markdown(text: str) -> str:
    r"""For a line of Markdown, a column of a table too: the text as it stands, and no markup.

    A subject would load an image, begin HTML, end a column, or send everybody of a team a mail.
    GitHub looks for those it calls behind Markdown's own work, when a backslash is gone
    (github/cmark-gfm, issue 181); a comment keeps name and sign apart there, which no reader sees.
    GitLab heeds the backslash.

    >>> markdown("@team: see #7 of <b>")
    '\\@<!-- -->team: see \\#<!-- -->7 of \\<b\\>'
    """
    return _CALLS.sub("<!-- -->", _MARKS.sub(r"\\\1", one_line(text)))


def chat(text: str) -> str:
    r"""For a message to a chat program: the text as it stands, that calls nobody and hides nothing.

    Slack takes `<!channel>` for everybody and `<https://…|words>` for a link of another name, and
    asks for `&`, `<` and `>` as entities, which Mattermost and Rocket.Chat read as well; for those
    `@all` is everybody, unless something that nobody sees stands behind the sign.

    >>> chat("<!channel> R&D: @all look"), chat("https://box/@me")
    ('&lt;!channel&gt; R&amp;D: @\u2060all look', 'https://box/@me')
    """
    called = _CHAT_CALLS.sub(f"@{_WORD_JOINER}", text)
    return html.escape(called, quote=False)


def xml(text: str) -> str:
    r"""For XML, which has yet to be escaped: without the characters that XML 1.0 does not have.

    One of them, and no reader takes any of the file; nothing that writes XML looks for them.

    >>> xml("a\x00b <c>")
    'a\ufffdb <c>'
    """
    return _NO_XML.sub("\ufffd", text)


def spreadsheet(value: object) -> object:
    """For a cell of CSV, which has yet to be quoted: an apostrophe before what looks a formula.

    A spreadsheet would compute it, and may fetch an address or start a program for it. What is
    no text stays as it is: a negative number is one.

    >>> spreadsheet("=1+1"), spreadsheet("a=1"), spreadsheet(-1)
    ("'=1+1", 'a=1', -1)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def path_component(text: str) -> str:
    r"""For one component of a path, such as a file's name without its ending.

    It never leaves its folder, is no option to any program, is short enough for every file
    system, and differs where texts differ: one that had to be changed ends with a digest.

    >>> path_component("bench-01.lan"), path_component("../../etc/passwd")
    ('bench-01.lan', 'etc-passwd~3754d6cb3a38e118')
    """
    safe = _NOT_IN_A_FILE_NAME.sub("-", text).strip("-.")[:_LONGEST_COMPONENT]
    if safe == text and text:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{safe or 'x'}~{digest}"
