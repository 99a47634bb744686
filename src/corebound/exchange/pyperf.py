"""Import pyperf files as histories, and export a run as a pyperf file."""

import gzip
import io
import json
import re
import shlex
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from corebound.exchange.reading import Unreadable, clean, parse_json
from corebound.exchange.result_files import (
    Context,
    commit_of,
    each_row,
    median_of,
    point_of,
    series_of,
)
from corebound.exchange.run_export import ExportedCell
from corebound.records import atomic_write
from corebound.records.history import Series
from corebound.records.launch_record import Launch
from corebound.records.run_record import Commit
from corebound.stats.launch_summary import summarise_launch
from corebound.stats.warmup import Warmup

# The metadata key for the command, in corebound's own exports.
COMMAND_KEY = "corebound_command"
_GZIP = b"\x1f\x8b"
_UNITS = {"second": ("ns", 1e9), "byte": ("bytes", 1.0), "integer": ("count", 1.0)}
_NAMED = re.compile(r"^(?P<scenario>[^\[\]]+)\[(?P<cell>.+)\]$", re.DOTALL)
# Circumstances besides the commit that can change a result, by pyperf's names.
_ENVIRONMENT = (
    "cpu_model_name", "platform", "python_implementation", "python_version", "python_compiler",
    "corebound_scenario_sha256",
)  # fmt: skip
_EXPORT = "Export the results from pyperf again, with metadata."


def read(path: Path, context: Context) -> Iterator[Series | Unreadable]:
    """Read every benchmark of a file, which may be gzip-compressed.

    Times are in the measuring host's local zone, which pyperf does not keep.

    Raises:
        Unreadable: The file is damaged or in another format.
    """
    data = atomic_write.read(path)
    content = parse_json(_unpacked(data) if data.startswith(_GZIP) else data)
    if not isinstance(content, dict) or not content.get("benchmarks"):
        raise Unreadable("not a pyperf file.", "Name a file written by `pyperf -o`.")
    if content.get("version") != "1.0":
        raise Unreadable(
            f"unsupported format {content.get('version')!r}; only '1.0' is supported.",
            "Write it with pyperf 1.0 or later: `pyperf convert`.",
        )
    common = content.get("metadata") or {}
    return each_row(content["benchmarks"], lambda benchmark: _series(benchmark, common, context))


def _unpacked(data: bytes) -> bytes:
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            unpacked = stream.read(atomic_write.LARGEST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise Unreadable(f"damaged gzip data: {error}.", "Copy the file again.") from None
    if len(unpacked) > atomic_write.LARGEST_BYTES:
        size = f"{atomic_write.LARGEST_BYTES >> 30} GiB"
        raise Unreadable(f"its content is larger than {size}.", "Name a file with fewer results.")
    return unpacked


def _series(benchmark: Mapping[str, Any], common: Mapping[str, Any], context: Context) -> Series:
    shared = {**common, **(benchmark.get("metadata") or {})}
    runs = [(run, {**shared, **(run.get("metadata") or {})}) for run in benchmark["runs"]]
    # Runs without values are calibrations.
    measured = [(run, metadata) for run, metadata in runs if run.get("values")]
    if not runs:
        raise Unreadable("a benchmark has no runs.", _EXPORT)
    metadata = (measured or runs)[0][1]
    name = str(metadata.get("name", "unnamed"))
    unit, scale = _UNITS[str(metadata.get("unit", "second"))]
    name_match = _NAMED.match(name)
    at = context.moment(metadata.get("date"))
    point = point_of(
        [median_of(run["values"]) for run, _ in measured],
        scale=scale,
        at=at,
        commit=context.commit or _commit(metadata, at),
        environment_key=tuple(
            (name, clean(str(metadata[name]))) for name in _ENVIRONMENT if name in metadata
        ),
        missing="no run has a value",
    )
    series = series_of(
        context,
        [replace(point, run=_text(metadata, "corebound_run"))],
        scenario=name_match["scenario"] if name_match else name,
        cell=name_match["cell"] if name_match else "default",
        unit=unit,
        host=metadata.get("corebound_host") or metadata.get("hostname"),
    )
    return replace(
        series,
        host_name=clean(str(context.host or metadata.get("hostname") or series.host)),
        title=clean(str(metadata.get("description") or name)),
        reproduce=_own_command(metadata.get(COMMAND_KEY)),
    )


def _text(metadata: Mapping[str, Any], name: str) -> str | None:
    return clean(str(metadata[name])) if name in metadata else None


def _own_command(text: object) -> tuple[str, ...]:
    """The command that measures a benchmark again, if corebound exported it; else empty."""
    try:
        words = tuple(shlex.split(text)) if isinstance(text, str) else ()
    except ValueError:
        return ()
    # A file from elsewhere can contain anything: accept only a command that measures.
    is_own = words[:2] == ("corebound", "run") and all(map(str.isprintable, words))
    return words if is_own else ()


def _commit(metadata: Mapping[str, Any], at: str) -> Commit | None:
    """The commit, from the metadata that pyperformance and corebound write."""
    commit = commit_of(
        metadata.get("commit_id"),
        subject=metadata.get("commit_subject", ""),
        at=clean(str(metadata.get("commit_date") or at)),
        dirty="corebound_dirty" in metadata,
    )
    return commit and replace(commit, tree=_text(metadata, "corebound_tree"))


_S = 1e9


def suite(cells: Sequence[ExportedCell]) -> str:
    """Build a pyperf file; cells without an `ok` launch are omitted, as pyperf requires values.

    Args:
        cells: Cells of one run, at least one of which has an `ok` launch.
    """
    run = cells[0].run
    metadata = _non_empty(
        {
            "unit": "second",
            "hostname": run.host.name,
            "cpu_model_name": run.host.cpu_model,
            "cpu_count": len(run.host.topology.allowed),
            "platform": run.host.kernel,
            "corebound_version": run.corebound,
            "corebound_run": run.id,
            "corebound_host": run.host.id,
            "commit_id": run.commit.sha if run.commit else "",
            "commit_date": run.commit.committed_at if run.commit else "",
            "corebound_dirty": "yes" if run.commit and run.commit.dirty else "",
            "corebound_tree": (run.commit.tree or "") if run.commit else "",
            "commit_subject": run.commit.subject if run.commit else "",
        }
    )
    benchmarks = [_benchmark(cell) for cell in cells if cell.summary.launches]
    return f"{json.dumps({'version': '1.0', 'metadata': metadata, 'benchmarks': benchmarks})}\n"


def _non_empty(metadata: dict[str, Any]) -> dict[str, Any]:
    """Keep the known values; pyperf accepts no empty text and no line breaks."""
    lines = {
        name: " ".join(value.split()) if isinstance(value, str) else value
        for name, value in metadata.items()
    }
    return {name: value for name, value in lines.items() if value not in {"", None}}


def _benchmark(cell: ExportedCell) -> dict[str, Any]:
    lock = cell.environment
    used = {summary.launch for summary in cell.summary.launches}
    return {
        "metadata": _non_empty(
            {
                "name": cell.cell.id,
                "description": cell.scenario.title,
                "python_version": lock.python if lock else "",
                "corebound_scenario": cell.cell.scenario,
                "corebound_cell": cell.cell.key,
                "corebound_scenario_sha256": cell.source.sha256,
                COMMAND_KEY: _command(cell),
            }
        ),
        "runs": [_run(launch, cell.warmup) for launch in cell.launches if launch.id in used],
    }


def _command(cell: ExportedCell) -> str:
    """The command that measures a cell again; empty if it does not fit on pyperf's one line."""
    profile = () if cell.run.profile is None else ("--profile", cell.run.profile)
    only = ("--only", cell.cell.key) if cell.cell.axes else ()
    command = shlex.join(("corebound", "run", cell.source.path, *profile, *only))
    return command if " ".join(command.split()) == command else ""


def _run(launch: Launch, warmup: Warmup) -> dict[str, Any]:
    warm_ns, measured_ns = _parts(launch, warmup)
    metadata: dict[str, Any] = {
        "date": datetime.fromisoformat(launch.started_at).strftime("%Y-%m-%d %H:%M:%S"),
        "duration": launch.duration_ns / _S,
        "loops": 1,
    }
    peak = max((worker.peak_rss_bytes or 0 for worker in launch.workers), default=0)
    if peak:
        metadata["mem_max_rss"] = peak
    run: dict[str, Any] = {
        "metadata": metadata,
        "values": [_seconds(duration_ns) for duration_ns in measured_ns],
    }
    if warm_ns:
        run["warmups"] = [[1, _seconds(duration_ns)] for duration_ns in warm_ns]
    return run


def _seconds(duration_ns: float) -> float:
    # pyperf rejects 0. A step measured as 0 may have taken up to half a clock tick.
    return max(duration_ns, 0.5) / _S


def _parts(launch: Launch, warmup: Warmup) -> tuple[list[float], list[float]]:
    """Split values into warm-ups and those that enter statistics, over all workers in turn.

    A server's launch has one value, its rated result. Its requests are counted, not stored
    one by one.
    """
    if launch.served is not None:
        return [], [summarise_launch(launch, warmup).median_ns]
    warm: list[float] = []
    measured: list[float] = []
    for worker in launch.workers:
        if worker.wall_ns:
            single = replace(launch, workers=(worker,))
            start = len(worker.wall_ns) - summarise_launch(single, warmup).used
            warm += worker.wall_ns[:start]
            measured += worker.wall_ns[start:]
    return warm, measured
