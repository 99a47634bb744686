"""Make untrusted text (names, commit subjects, reasons) safe for where it is shown.

Nothing that a reader needs is lost. These functions handle only what the libraries of a format
(ElementTree, Jinja, csv) do not escape themselves.
"""

import hashlib
import html
import re

# Characters that Markdown, GitHub or GitLab would interpret as markup.
_MARKS = re.compile(r"([\\`*_\[\]<>|~#&@!$])")
# Where `@` would mention a user, or `#` would link another issue to this text.
_CALLS = re.compile(r"(?<=@)(?=[0-9A-Za-z])|(?<=#)(?=[0-9])")
# Mentions in a chat, but not within URLs and e-mail addresses, which must stay intact.
_CHAT_CALLS = re.compile(r"(?<![^\s(\[{<\"'`,;:])@(?=[0-9A-Za-z])")
_WORD_JOINER = "\u2060"
# Characters that XML 1.0 cannot represent, even escaped (§2.2, production 2).
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Commands that a CI service executes when it finds them in a log. GitHub: `::` at the start of a
# line, after optional blanks, and `##[` anywhere in it (actions/runner, ActionCommand.cs); Azure:
# `##vso[` anywhere; TeamCity: `##teamcity[`.
_COMMAND = re.compile(r"(?m)^(?:[^\S\n]|\x1b\[[\d;]*m)*:(?=:)|#(?=#\w*\[)")
# The start of a formula, including characters that a spreadsheet strips (OWASP, CSV Injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_WEB_ADDRESS = re.compile(r"https?://[^\s\x00-\x20\"'<>\\^`{|}]+", re.IGNORECASE)
# Everything except the characters that are safe in file names everywhere. A tilde is safe too,
# but it is reserved for the digest.
_NOT_IN_A_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_COMPONENT = 120


def one_line(text: str) -> str:
    r"""For a terminal, a log or an e-mail: one line without control sequences.

    Escape sequences, line ends and direction overrides could hide lines or fake others. Each
    such character becomes a space.

    >>> one_line("look\x1b[2J\ntwice")
    'look [2J twice'
    """
    return "".join(letter if letter.isprintable() else " " for letter in text)


def lines(text: str) -> str:
    r"""For a terminal or a log: like `one_line`, but the text may contain line ends and tabs.

    >>> lines("a\x1b[2J\n\tb\u202e")
    'a [2J\n\tb '
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(letter if letter in "\n\t" else one_line(letter) for letter in text)


def uncommanded(text: str, *, within_line: bool = False) -> str:
    r"""For the log of a CI service: a space breaks every command that the service would execute.

    Args:
        text: Text of any number of lines; it may contain our own colour codes.
        within_line: Whether something other than blanks precedes the text on its line.

    >>> uncommanded(" ::error::a\n##[group]b"), uncommanded("::", within_line=True)
    (' : :error::a\n# #[group]b', '::')
    """
    if ":" not in text and "#" not in text:
        return text
    # With a character in front, the start of the text is not the start of a line.
    before = "." if within_line else ""
    return _COMMAND.sub(lambda found: f"{found[0]} ", before + text)[len(before) :]


def json_text(document: str) -> str:
    r"""For an encoded JSON document: the same values, without terminal control sequences.

    A JSON encoder escapes only characters below the space. All other characters handled here
    occur only within strings, where an escape has the same meaning.

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
    r"""For a line of Markdown or a column of a table: the literal text, without markup.

    Otherwise a commit subject could load an image, start HTML, end a column, or notify a whole
    team. GitHub looks for mentions after Markdown has been processed, when the backslash is gone
    (github/cmark-gfm, issue 181), so an invisible comment separates the sign from the name.
    GitLab respects the backslash.

    >>> markdown("@team: see #7 of <b>")
    '\\@<!-- -->team: see \\#<!-- -->7 of \\<b\\>'
    """
    return _CALLS.sub("<!-- -->", _MARKS.sub(r"\\\1", one_line(text)))


def chat(text: str) -> str:
    r"""For a message to a chat program: the literal text, without mentions or disguised links.

    In Slack `<!channel>` notifies everyone and `<https://…|words>` is a link with other text. It
    expects `&`, `<` and `>` as entities, which Mattermost and Rocket.Chat accept as well. In
    those two `@all` notifies everyone, unless an invisible character follows the sign.

    >>> chat("<!channel> R&D: @all look"), chat("https://box/@me")
    ('&lt;!channel&gt; R&amp;D: @\u2060all look', 'https://box/@me')
    """
    called = _CHAT_CALLS.sub(f"@{_WORD_JOINER}", text)
    return html.escape(called, quote=False)


def xml(text: str) -> str:
    r"""For XML, before it is escaped: replace the characters that XML 1.0 does not allow.

    With one such character, no parser accepts the file, and no XML writer checks for them.

    >>> xml("a\x00b <c>")
    'a\ufffdb <c>'
    """
    return _NO_XML.sub("\ufffd", text)


def spreadsheet(value: object) -> object:
    """For a cell of CSV, before it is quoted: an apostrophe before text that looks like a formula.

    A spreadsheet would evaluate the formula, and could fetch a URL or start a program. Values that
    are not text, such as negative numbers, stay as they are.

    >>> spreadsheet("=1+1"), spreadsheet("a=1"), spreadsheet(-1)
    ("'=1+1", 'a=1', -1)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def web_address(url: object) -> str | None:
    """For a link on a page: the address if it is one of the web, else None.

    An address from a file may be a script, which would run in the reader's browser.

    >>> web_address("https://example.org/x"), web_address("javascript:alert(1)")
    ('https://example.org/x', None)
    """
    return url if isinstance(url, str) and _WEB_ADDRESS.fullmatch(url) else None


def path_component(text: str) -> str:
    r"""For one component of a path, such as a file name without its suffix.

    The result never leaves its folder, is not an option to any program, and is short enough for
    every file system. Different texts give different results: if the text had to be changed, the
    result ends with a digest.

    >>> path_component("bench-01.lan"), path_component("../../etc/passwd")
    ('bench-01.lan', 'etc-passwd~3754d6cb3a38e118')
    """
    safe = _NOT_IN_A_FILE_NAME.sub("-", text).strip("-.")[:_LONGEST_COMPONENT]
    if safe == text and text:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{safe or 'x'}~{digest}"
