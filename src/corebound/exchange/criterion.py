"""Import the results of Criterion, which `cargo bench` leaves below `target/criterion`."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from corebound.exchange.reading import Unreadable, reporting_damage
from corebound.exchange.result_files import Context, key_of, read_json, series_of, utc
from corebound.records.history import Series


def read(path: Path, context: Context) -> Iterable[Series | Unreadable]:
    """Read the latest result of every benchmark below a folder.

    All samples of a benchmark are from one process, so Criterion's median is one launch; its
    interval does not cover how much processes differ. The files have neither host nor commit, and
    were measured when they were written.

    Args:
        path: `target/criterion`, or the folder of one benchmark or group.
        context: What the user says about it.

    Raises:
        Unreadable: There is no result.
    """
    files = sorted(path.glob("**/new/estimates.json")) if path.is_dir() else []
    if not files:
        raise Unreadable(
            "no results of Criterion (new/estimates.json) in this folder.",
            "Name `target/criterion` after `cargo bench`.",
        )
    return (_series_or_error(file, path, context) for file in files)


def _series_or_error(file: Path, folder: Path, context: Context) -> Series | Unreadable:
    try:
        with reporting_damage():
            return _series(file, folder, context)
    except Unreadable as error:
        return Unreadable(f"{file.relative_to(folder)}: {error.what}", error.fix)


def _series(file: Path, folder: Path, context: Context) -> Series:
    estimates = read_json(file)
    written = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat()
    context = replace(context, modified_at=utc(written))
    scenario, parameters = _name(file, folder)
    median = estimates["median"]
    value = median.get("point_estimate") if isinstance(median, Mapping) else None
    return series_of(context, [context.point([value])], scenario=scenario, cell=key_of(parameters))


def _name(file: Path, folder: Path) -> tuple[str, dict[str, Any]]:
    """The name of a benchmark, and its parameter; by its folder if the file with both is absent."""
    about_file = file.with_name("benchmark.json")
    if not about_file.exists():
        return file.parent.parent.relative_to(folder).as_posix(), {}
    about = read_json(about_file)
    parts = (about["group_id"], about.get("function_id"))
    value = about.get("value_str")
    return "/".join(str(part) for part in parts if part), {} if value is None else {"input": value}
