"""The summary of a nightly run: as text, as JSON, and posted to a URL."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from corebound import errors
from corebound.analysis.json_documents import attributes
from corebound.analysis.wording import and_more, count
from corebound.records import atomic_write
from corebound.text import chat, one_line, uncommanded
from corebound.workflow.nightly_steps import Failure, NightlyResult


class NightlySummary(Struct, frozen=True, kw_only=True):
    """The result of a nightly run.

    Attributes:
        started_at: When it began, as in the names of its records.
        host: The machine's name.
        project: The project that was measured.
        result: The result of the steps.
        regressions: The output of `corebound regressions --json`; None if that step did not run.
        recommendations: The output of `corebound tune --verify --json` for each recommendation.
        not_verified: Why no recommendation was checked, and how to fix that; else empty.
        site: The public address of the site; None if unknown.
        partial: Whether the budget ran out before everything was measured.
        snapshot: The name of the working tree, if it was measured with uncommitted changes.
        delivery_code: The exit code of writing and sending the summary.
    """

    started_at: str
    host: str
    project: str
    result: NightlyResult
    regressions: Mapping[str, Any] | None
    site: str | None
    partial: bool
    snapshot: str | None = None
    recommendations: Sequence[Mapping[str, Any]] = ()
    not_verified: str = ""
    delivery_code: int = 0

    @property
    def exit_code(self) -> int:
        """The exit code of the nightly run, or else of the summary's delivery."""
        return self.result.exit_code or self.delivery_code

    @property
    def status(self) -> str:
        """The status in a word or two.

        `ok`, `regression`, `recommendation lost`, `launches failed`, `budget too short`,
        `series not analysed`, `failed` or `crashed`.
        """
        if self.result.failure is not None:
            return "crashed" if self.result.failure.code == errors.CRASHED else "failed"
        if self.result.exit_code == errors.NO_ANSWER:
            was_measured = self.result.codes.get("run") != errors.NO_ANSWER
            return "series not analysed" if was_measured else "budget too short"
        if self.result.exit_code == errors.REGRESSION and not _alarms(self) and _lost(self):
            return "recommendation lost"
        words = {0: "ok", errors.REGRESSION: "regression"}
        return words.get(self.result.exit_code, "launches failed")

    @property
    def steps(self) -> Mapping[str, int]:
        """The exit code of each step, by its name."""
        return self.result.codes

    @property
    def failed_step(self) -> str | None:
        """The step at which it ended; None if all were carried out."""
        return self.result.failure.step if self.result.failure else None

    @property
    def text(self) -> str:
        """The summary, with a paragraph for each new regression."""
        return uncommanded("\n".join(_lines(self)))

    @property
    def document(self) -> dict[str, Any]:
        """The same as plain data, as `corebound nightly --json` prints it.

        Chat programs show its `text`.
        """
        failure = self.result.failure
        return {
            "text": chat(self.text),
            "status": self.status,
            "exit_code": self.result.exit_code,
            "night": self.started_at,
            **attributes(self, "host", "project", "steps"),
            "failed": None if failure is None else {"step": failure.step, "code": failure.code},
            **attributes(self, "partial", "snapshot"),
            "regressions": _alarms(self),
            **attributes(self, "recommendations", "site"),
        }


def merge_regressions(outputs: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """What a summary uses of several outputs of `corebound regressions --json`; None without any.

    A series that has no results, or cannot be analysed, is listed once.
    """
    every = [*outputs]
    if not every:
        return None
    several = {
        name: [item for output in every for item in output.get(name, ())]
        for name in ("changes", "commits")
    }
    return {**every[0], **several}


def _lines(summary: NightlySummary) -> Iterator[str]:
    name = f"{summary.project} on {summary.host}, nightly run of {summary.started_at}"
    yield f"{name}: {_headline(summary)}"
    yield from _commit_lines(summary)
    for series in (summary.regressions or {}).get("failing", ()):
        reason = f": {series['reason']}" if series["reason"] else ""
        since = f"no result since {series['since']}{reason}"
        yield f"✗ {_series_name(series)}: {one_line(since)}"
    for series in (summary.regressions or {}).get("not_analysed", ()):
        yield f"? {_series_name(series)}: not analysed: {one_line(series['reason'])}"
    if summary.not_verified:
        yield f"? No recommendation was checked: {one_line(summary.not_verified)}"
    for checked in summary.recommendations:
        if checked["answer"] != "holds":
            sign = "✗" if checked["answer"] == "lost" else "?"
            yield f"{sign} {one_line(checked['title'])}: {one_line(checked['text'])}"
    if summary.result.failure is not None:
        yield from _failure_lines(summary.result.failure)
    elif summary.site:
        yield summary.site


def _headline(summary: NightlySummary) -> str:
    if summary.result.failure is not None:
        return f"{summary.status.upper()} at `{summary.result.failure.step}`"
    alarms, lost = len(_alarms(summary)), len(_lost(summary))
    headline = count(alarms, "new regression") if alarms else "no new regression"
    if lost:
        headline += f", {count(lost, 'recommendation')} lost"
    if summary.result.codes.get("run") == errors.LaunchError.exit_code:
        headline += ", some launches failed"
    if summary.snapshot is not None:
        headline += (
            f", measured with uncommitted changes ({summary.snapshot}): not part of the history"
        )
    is_short = summary.partial or summary.result.codes.get("run") == errors.NO_ANSWER
    return headline + (", the budget ran out before everything was measured" if is_short else "")


def _lost(summary: NightlySummary) -> tuple[Mapping[str, Any], ...]:
    """The recommendations that no longer hold."""
    return tuple(checked for checked in summary.recommendations if checked["answer"] == "lost")


def _alarms(summary: NightlySummary) -> tuple[Mapping[str, Any], ...]:
    """The new regressions; those of secondary benchmarks are only on the site."""
    changes = (summary.regressions or {}).get("changes", ())
    return tuple(
        change for change in changes if change["alarm"] and change["importance"] == "primary"
    )


# The series of a commit that a summary names.
_MOST_NAMED = 3


def _commit_lines(summary: NightlySummary) -> Iterator[str]:
    """For each commit with new regressions what it did, the largest of them, and its page."""
    alarms = {alarm["id"]: alarm for alarm in _alarms(summary)}
    for entry in (summary.regressions or {}).get("commits", ()):
        changes = [alarms[name] for name in entry["changes"] if name in alarms]
        if not changes:
            continue
        good, bad = entry["last_good"]["commit"], entry["first_bad"]["commit"]
        kind = "commit" if bad and good != bad else "nightly run"
        subject = one_line(entry["first_bad"]["subject"] or "") if kind == "commit" else ""
        yield f"{kind} {entry['id']} {subject}".rstrip() + f": {entry['summary']}"
        for change in changes[:_MOST_NAMED]:
            yield f"  {_series_name(change)}: {change['size']}"
        if len(changes) > _MOST_NAMED:
            yield f"  {and_more(len(changes) - _MOST_NAMED)}"
        if entry["link"]:
            # Changes of memory have no page.
            yield f"  {entry['link']}"


def _series_name(change: Mapping[str, Any]) -> str:
    cell = f" [{change['cell']}]" if change["cell"] not in {"", "default"} else ""
    return one_line(f"{change['title']}{cell}")


def _failure_lines(failure: Failure) -> Iterator[str]:
    if failure.code == errors.CRASHED:
        yield "This is a bug in corebound, not a result. Please report it."
    yield f"exit code {failure.code}; the published site is unchanged. {failure.log} ends with:"
    yield from (f"  {one_line(line)}" for line in failure.tail)


_TIMEOUT_S = 30.0


class _AsJson(urllib.request.BaseHandler):
    """Sets the content type to JSON before urllib's default marks the data as a form."""

    handler_order = 0

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        """Set the header of a request; urllib calls this before it sends one."""
        request.add_unredirected_header("Content-Type", "application/json")
        return request

    https_request = http_request


def write_summary(text: str, file: Path) -> None:
    """Write a summary atomically; readers see the previous one or this one.

    Raises:
        InputError: The file cannot be written.
    """
    with errors.report_os_errors(
        "the summary cannot be written",
        where=file,
        fix="Name a file that can be written with --summary.",
    ):
        atomic_write.put(file, f"{text}\n".encode())


def send_summary(document: Mapping[str, Any], url: str) -> None:
    """POST a document as JSON. The URL may be a secret, so messages name only its host.

    Raises:
        InputError: The URL is neither http nor https.
        LaunchError: The document could not be sent, or the server rejected it.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise errors.InputError(
            what="the summary cannot be sent to this address.",
            where="--webhook",
            fix="Pass a URL that begins with https://.",
        )
    data = json.dumps(document).encode()
    try:
        # Uses a proxy if the environment names one.
        with urllib.request.build_opener(_AsJson()).open(url, data, timeout=_TIMEOUT_S):
            pass
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise errors.LaunchError(
            what=f"the summary could not be sent to {parts.hostname}: {reason}.",
            where="--webhook",
            fix="Check the address and whether this host can reach it.",
        ) from None
