"""Import files of hyperfine (`--export-json`)."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from corebound.exchange.reading import Unreadable, clean
from corebound.exchange.result_files import Context, each_row, key_of, read_json, series_of
from corebound.records.history import Series

_S = 1e9


def read(path: Path, context: Context) -> Iterable[Series | Unreadable]:
    """Read every command of a file.

    Each run of a command is a process of its own, so each is a launch. A command of which a run
    failed has no result, because a failed run is often a short one. The file has neither host nor
    time nor commit.

    Raises:
        Unreadable: The file is damaged or in another format.
    """
    content = read_json(path)
    results = content.get("results") if isinstance(content, dict) else None
    if not isinstance(results, list):
        raise Unreadable(
            "not a file of hyperfine.", "Write it with `hyperfine --export-json FILE`."
        )
    return each_row(results, lambda result: _series(result, context), what="result")


def _series(result: Mapping[str, Any], context: Context) -> Series:
    failure = _failure(result.get("exit_codes"))
    # Versions before 1.6 do not write the times.
    seconds = result.get("times") or [result.get("median", result.get("mean"))]
    point = context.point([] if failure else seconds, scale=_S, missing=failure)
    cell = key_of(result.get("parameters") or {})
    return series_of(context, [point], scenario=str(result["command"]), cell=cell)


def _failure(exit_codes: object) -> str | None:
    """How runs failed; None if all succeeded, or if the version of hyperfine does not say it."""
    codes = exit_codes if isinstance(exit_codes, list) else []
    failed = [code for code in codes if code != 0]
    if not failed:
        return None
    # hyperfine writes null for a run that a signal ended.
    ending = "ended by a signal" if failed[0] is None else f"exit code {clean(str(failed[0]))}"
    part = f" in {len(failed)} of {len(codes)} runs"
    return ending if len(failed) == len(codes) else ending + part
