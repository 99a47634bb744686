"""The summary of a nightly run: as text, as JSON, and posted to a URL."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from corebound.errors import (
    CRASHED,
    NO_ANSWER,
    REGRESSION,
    InputError,
    LaunchError,
    report_os_errors,
)
from corebound.records import atomic_write
from corebound.text import chat, json_text, one_line, uncommanded
from corebound.workflow.nightly.night import Failure, NightlyResult


class Summary(Struct, frozen=True, kw_only=True):
    """The content of a summary.

    Attributes:
        night: When the nightly run began.
        host: The machine's name.
        project: The project that was measured.
        outcome: The result of the steps.
        regressions: The output of `corebound regressions --json`; None if that step did not run.
        site: The public address of the site; None if unknown.
        partial: Whether the budget ran out before everything was measured.
        snapshot: The name of the working tree, if it was measured with uncommitted changes.
    """

    night: str
    host: str
    project: str
    outcome: NightlyResult
    regressions: Mapping[str, Any] | None
    site: str | None
    partial: bool
    snapshot: str | None = None

    @property
    def status(self) -> str:
        """The status in one word."""
        if self.outcome.failure is not None:
            return "crashed" if self.outcome.failure.code == CRASHED else "failed"
        if self.outcome.exit_code == NO_ANSWER:
            was_measured = self.outcome.codes.get("run") != NO_ANSWER
            return "series not analysed" if was_measured else "nothing measured"
        words = {0: "ok", REGRESSION: "regression"}
        return words.get(self.outcome.exit_code, "launches failed")


def text(told: Summary) -> str:
    """Render the summary as plain text."""
    return uncommanded("\n".join(_lines(told)))


def _lines(told: Summary) -> Iterator[str]:
    yield f"{told.project} on {told.host}, night of {told.night}: {_headline(told)}"
    for one in _alarms(told):
        yield from _alarm(one)
    for one in (told.regressions or {}).get("failing", ()):
        since = f"no figure since {one['since']}" + (f": {one['reason']}" if one["reason"] else "")
        yield f"✗ {_named(one)}: {one_line(since)}"
    for one in (told.regressions or {}).get("not_analysed", ()):
        yield f"? {_named(one)}: not analysed: {one_line(one['reason'])}"
    if told.outcome.failure is not None:
        yield from _failed(told.outcome.failure)
    elif told.site:
        yield told.site


def _headline(told: Summary) -> str:
    if told.outcome.failure is not None:
        return f"{told.status.upper()} at `{told.outcome.failure.step}`"
    count = len(_alarms(told))
    said = f"{count} new regression{'' if count == 1 else 's'}" if count else "no new regression"
    if told.outcome.codes.get("run") == LaunchError.exit_code:
        said += ", some launches failed"
    if told.snapshot is not None:
        said += f", measured with uncommitted changes ({told.snapshot}): not part of the history"
    if told.outcome.codes.get("run") == NO_ANSWER:
        return said + ", the budget ran out before anything was measured"
    return said + (", the budget ran out before all was measured" if told.partial else "")


def _alarms(told: Summary) -> tuple[Mapping[str, Any], ...]:
    changes = (told.regressions or {}).get("changes", ())
    return tuple(one for one in changes if one["alarm"])


def _alarm(one: Mapping[str, Any]) -> Iterator[str]:
    """Three lines for a regression: configuration and size, commit, location."""
    yield f"{_named(one)}: {one['size']}"
    good, bad = one["last_good"], one["first_bad"]
    if bad["commit"] and good["commit"] != bad["commit"]:
        since = f"{good['commit'][:10]}..{bad['commit'][:10]}" if good["commit"] else "up to it"
        yield f"  commit {bad['commit'][:10]} {one_line(bad.get('subject') or '')} ({since})"
    else:
        yield f"  between the nights {good['at']} and {bad['at']}, of the same commit"
    yield f"  {one['link']}"


def _named(one: Mapping[str, Any]) -> str:
    cell = f" [{one['cell']}]" if one["cell"] not in {"", "default"} else ""
    return one_line(f"{one['title']}{cell}")


def _failed(failure: Failure) -> Iterator[str]:
    if failure.code == CRASHED:
        yield "This is a bug in corebound, not a result. Please report it."
    yield f"exit code {failure.code}; the last good site is as it was. {failure.log} ends with:"
    yield from (f"  {one_line(line)}" for line in failure.tail)


def document(told: Summary) -> dict[str, Any]:
    """The summary as a JSON object for scripts; `text` is the part that chat programs show."""
    failure = told.outcome.failure
    return {
        "text": chat(text(told)),
        "status": told.status,
        "exit_code": told.outcome.exit_code,
        "night": told.night,
        "host": told.host,
        "project": told.project,
        "steps": told.outcome.codes,
        "failed": None if failure is None else {"step": failure.step, "code": failure.code},
        "partial": told.partial,
        "snapshot": told.snapshot,
        "regressions": _alarms(told),
        "site": told.site,
    }


def as_json(told: Summary) -> str:
    """Serialise the summary's object."""
    return json_text(json.dumps(document(told), indent=1, ensure_ascii=False))


_TIMEOUT_S = 30.0


class _AsJson(urllib.request.BaseHandler):
    """Sets the content type to JSON before urllib's default marks the data as a form."""

    handler_order = 0

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        """Set the header of a request; urllib calls this before it sends one."""
        request.add_unredirected_header("Content-Type", "application/json")
        return request

    https_request = http_request


def write(text: str, file: Path) -> None:
    """Write a summary atomically; readers see the previous one or this one.

    Raises:
        InputError: The file cannot be written.
    """
    with report_os_errors(
        "the summary cannot be written",
        where=file,
        fix="Name a file that can be written with --summary.",
    ):
        atomic_write.put(file, f"{text}\n".encode())


def send(document: Mapping[str, Any], url: str) -> None:
    """POST a document as JSON. The URL may be a secret, so messages name only its host.

    Raises:
        InputError: The URL is neither http nor https.
        LaunchError: The document could not be sent, or the server rejected it.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InputError(
            what="this is no address that a summary can be sent to.",
            where="--webhook",
            fix="Write one that begins with https://.",
        )
    data = json.dumps(document).encode()
    try:
        # Uses a proxy if the environment names one.
        with urllib.request.build_opener(_AsJson()).open(url, data, timeout=_TIMEOUT_S):
            pass
    except (urllib.error.URLError, OSError) as error:
        why = getattr(error, "reason", None) or error
        raise LaunchError(
            what=f"the summary could not be sent to {parts.hostname}: {why}.",
            where="--webhook",
            fix="Look whether the address is right and can be reached from here.",
        ) from None
