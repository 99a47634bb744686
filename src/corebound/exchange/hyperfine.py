"""Import files of hyperfine (`--export-json`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corebound.exchange.reading import Unreadable, parse_json, reporting_damage
from corebound.exchange.result_files import Context, key_of, point_of, series_of
from corebound.records.history import Series

_S = 1e9


def read(path: Path, context: Context) -> Sequence[Series]:
    """Read every command of a file.

    Each run of a command is a process of its own, so each is a launch. The file has neither host
    nor time nor commit.

    Raises:
        Unreadable: The file is damaged or in another format.
    """
    content = parse_json(path.read_bytes())
    with reporting_damage():
        results = content.get("results") if isinstance(content, dict) else None
        if not isinstance(results, list) or not all("command" in result for result in results):
            raise Unreadable(
                "not a file of hyperfine.", "Write it with `hyperfine --export-json FILE`."
            )
        return [_series(result, context) for result in results]


def _series(result: Mapping[str, Any], context: Context) -> Series:
    # Versions before 1.6 do not write the times.
    seconds = result.get("times") or [result.get("median", result.get("mean"))]
    return series_of(
        context,
        [
            point_of(
                [float(value) * _S for value in seconds],
                at=context.moment(None),
                commit=context.commit,
            )
        ],
        host=context.host_name(None),
        scenario=str(result["command"]),
        cell=key_of(result.get("parameters") or {}),
    )
