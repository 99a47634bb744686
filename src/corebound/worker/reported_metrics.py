"""The values that a command prints or writes to a file, read after each of its runs."""

from __future__ import annotations

import json
import math
import os
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corebound.worker.protocol import MetricSource
from corebound.worker.workload import WorkloadError

# What a failed launch shows of the output: the reason has its end, the log has more.
_SHOWN_LINES, _SHOWN_LENGTH = 3, 200
_LOGGED_BYTES = 4000
# A program may write without end; a longer output is not read.
_MOST_BYTES = 64 << 20
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?")


class ReportedMetrics:
    """Takes up the output of a command, and finds its metrics.

    The output is kept in memory, so that the command never waits for a reader.
    """

    def __init__(self, sources: Sequence[Mapping[str, Any]]) -> None:
        self._sources = [MetricSource(**source) for source in sources]
        self._out = os.memfd_create("output")
        # JSON is not mixed with messages; text is searched in both.
        self._error = os.memfd_create("errors")

    @property
    def descriptors(self) -> tuple[int, int]:
        """Where the command's standard output and standard error go."""
        return self._out, self._error

    def clear(self) -> None:
        """Forget the output of the run before, and mark files of that run as old."""
        for descriptor in self.descriptors:
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
        for source in self._sources:
            if source.file is not None and Path(source.file).exists():
                os.utime(source.file, (0, 0))

    def copy_to_log(self) -> None:
        """Write the end of the output to the launch's log."""
        for descriptor in self.descriptors:
            size = os.fstat(descriptor).st_size
            os.write(2, os.pread(descriptor, _LOGGED_BYTES, max(size - _LOGGED_BYTES, 0)))

    def values(self) -> list[list[float]]:
        """For each metric its value, then its samples.

        Raises:
            WorkloadError: one is missing, not a number or not above zero.
        """
        return [self._value(source) for source in self._sources]

    def _value(self, source: MetricSource) -> list[float]:
        text = self._text(source)
        if source.regex is not None:
            matches = re.findall(source.regex, text, re.MULTILINE)
            if not matches:
                raise self._error_of(source, "has no match of its `regex`", text)
            found = [self._number(source, match, text) for match in matches]
            return [statistics.median(found), *found] if source.all_matches else found[-1:]
        document = self._document(source, text)
        values = self._at(source, document, source.path or (), text)
        samples = values if len(values) > 1 else []
        if source.samples is not None:
            samples = self._at(source, document, source.samples, text)
        return [statistics.median(values), *samples]

    def _text(self, source: MetricSource) -> str:
        """The file, or the output: for a regular expression with what went to standard error."""
        if source.file is None:
            ends = self.descriptors if source.regex is not None else self.descriptors[:1]
            return "\n".join(_content(end).decode(errors="replace") for end in ends)
        try:
            if not Path(source.file).stat().st_mtime_ns:
                raise self._error_of(source, f"was not written to `{source.file}`", "")
            with Path(source.file).open("rb") as file:
                return file.read(_MOST_BYTES).decode(errors="replace")
        except OSError as error:
            what = f"is not in `{source.file}`: {error.strerror}"
            raise self._error_of(source, what, "") from None

    def _document(self, source: MetricSource, text: str) -> Any:
        """The JSON of a text; the last document in it that begins a line, after other output."""
        try:
            return json.loads(text)
        except ValueError:
            pass
        decoder, document, end = json.JSONDecoder(), None, 0
        for line in re.finditer(r"^[\[{]", text, re.MULTILINE):
            if line.start() < end:
                continue
            try:
                document, end = decoder.raw_decode(text, line.start())
            except ValueError:
                continue
        if end:
            return document
        raise self._error_of(source, "is not found: there is no JSON", text)

    def _at(
        self, source: MetricSource, document: Any, path: Sequence[str | int | None], text: str
    ) -> list[float]:
        """The numbers at a path; a list there is several."""
        try:
            found = _walk(document, path)
        except (KeyError, IndexError, TypeError) as error:
            what = f"is not found: JSON has nothing at {error}"
            raise self._error_of(source, what, text) from None
        if len(found) == 1 and isinstance(found[0], list):
            found = found[0]
        if not found:
            raise self._error_of(source, "is an empty list", text)
        return [self._number(source, value, text) for value in found]

    def _number(self, source: MetricSource, found: Any, text: str) -> float:
        word = found.strip() if isinstance(found, str) else found
        if isinstance(word, str) and _THOUSANDS.fullmatch(word):
            word = word.replace(",", "")
        try:
            number = math.nan if isinstance(word, bool) else float(word)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise self._error_of(source, f"is `{found}`, not a number", text)
        if number <= 0:
            raise self._error_of(source, f"is {found}, not above zero", text)
        return number

    def _error_of(self, source: MetricSource, what: str, text: str) -> WorkloadError:
        lines = [line.strip()[:_SHOWN_LENGTH] for line in text.splitlines() if line.strip()]
        ending = " / ".join(lines[-_SHOWN_LINES:]) or "nothing"
        shown = "" if source.file is not None and not text else f" The output ends: {ending}"
        return WorkloadError(
            what=f"the metric `{source.name}` {what}.{shown}",
            fix="Run the command yourself and correct `metric`; the log has its output.",
        )


def _walk(document: Any, path: Sequence[str | int | None]) -> list[Any]:
    """Everything at a path into JSON."""
    found = [document]
    for step in path:
        found = [item for value in found for item in (value if step is None else (value[step],))]
    return found


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, min(os.fstat(descriptor).st_size, _MOST_BYTES), 0)
