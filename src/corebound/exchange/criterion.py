"""Import the results of Criterion, which `cargo bench` leaves below `target/criterion`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from corebound.exchange.reading import Unreadable, parse_json, reporting_damage
from corebound.exchange.result_files import Context, key_of, point_of, series_of, utc
from corebound.records.history import Series


def read(path: Path, context: Context) -> Sequence[Series]:
    """Read the latest result of every benchmark below a folder.

    All samples of a benchmark are from one process, so Criterion's median is one launch; its
    interval does not cover how much processes differ. The files have neither host nor commit, and
    were measured when they were written.

    Args:
        path: `target/criterion`, or the folder of one benchmark or group.
        context: What the user says about it.

    Raises:
        Unreadable: A file is damaged, or there is none.
    """
    files = sorted(path.glob("**/new/estimates.json")) if path.is_dir() else []
    if not files:
        raise Unreadable(
            "no results of Criterion (new/estimates.json) in this folder.",
            "Name `target/criterion` after `cargo bench`.",
        )
    return [_series(file, path, context) for file in files]


def _series(file: Path, folder: Path, context: Context) -> Series:
    estimates = parse_json(file.read_bytes())
    written = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat()
    context = replace(context, modified_at=utc(written))
    with reporting_damage():
        scenario, parameters = _name(file, folder)
        return series_of(
            context,
            [
                point_of(
                    [float(estimates["median"]["point_estimate"])],
                    at=context.moment(None),
                    commit=context.commit,
                )
            ],
            host=context.host_name(None),
            scenario=scenario,
            cell=key_of(parameters),
        )


def _name(file: Path, folder: Path) -> tuple[str, dict[str, Any]]:
    """The name of a benchmark, and its parameter; by its folder if the file with both is absent."""
    about_file = file.with_name("benchmark.json")
    if not about_file.exists():
        return file.parent.parent.relative_to(folder).as_posix(), {}
    about = parse_json(about_file.read_bytes())
    parts = (about["group_id"], about.get("function_id"))
    value = about.get("value_str")
    return "/".join(str(part) for part in parts if part), {} if value is None else {"input": value}
