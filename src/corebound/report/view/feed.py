"""The feed of changes, for who would rather be told: Atom (RFC 4287)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from corebound.report.view.changes import ChangeRow, change_row
from corebound.report.view.chronicle import Chronicle

_MOST_ENTRIES = 100
# XML 1.0 has no way to write these.
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_NO_MOMENT = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One change; `id` never changes, `updated` is when it was first surely seen."""

    id: str
    title: str
    updated: str
    address: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """All of them, the latest first."""

    id: str
    updated: str
    entries: tuple[Entry, ...]


def feed(known: Chronicle, *, now: str, records: str = "") -> Feed:
    """The feed of all clear changes; without any it is empty and of now.

    `records` as in `CommandLine.at`.
    """
    entries = tuple(
        _entry(change_row(change, known, root=""), change.first_bad.at, records)
        for change in known.changes[:_MOST_ENTRIES]
    )
    updated = max((entry.updated for entry in entries), default=rfc3339(now))
    return Feed(id=_urn("changes"), updated=updated, entries=entries)


def _entry(row: ChangeRow, moment: str, records: str) -> Entry:
    setting = f"{row.label.name} {row.label.more}".strip()
    said = [f"{row.size.word} {row.interval}".strip(), f"on {row.where}", row.status.word]
    if row.because:
        said.append(f"because {row.because}")
    if row.commits:
        said.append(f"commits {row.commits}")
    if row.subject:
        said.append(row.subject)
    if row.command:
        said.append(f"again: {row.command.at(records)}")
    return Entry(
        id=_urn(row.id),
        title=_clean(f"{row.size.sign} {row.size.word}: {row.title}, {setting}"),
        updated=rfc3339(moment),
        address=row.address,
        summary=_clean("; ".join(said)),
    )


def rfc3339(moment: str) -> str:
    """A moment as Atom wants it; what is none stands at the beginning of time.

    >>> rfc3339("2026-03-14"), rfc3339("2026-03-14T02:00:00Z"), rfc3339("tonight")
    ('2026-03-14T00:00:00Z', '2026-03-14T02:00:00Z', '1970-01-01T00:00:00Z')
    """
    if _DAY.fullmatch(moment):
        return f"{moment}T00:00:00Z"
    return moment if _MOMENT.fullmatch(moment) else _NO_MOMENT


def _urn(name: str) -> str:
    """An identifier that stays: a UUID of version 8 (RFC 9562), made of the name's hash."""
    digest = hashlib.sha256(f"corebound {name}".encode()).hexdigest()
    return f"urn:uuid:{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"


def _clean(text: str) -> str:
    return _NOT_IN_XML.sub("�", text)
