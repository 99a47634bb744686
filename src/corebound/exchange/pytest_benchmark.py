"""Import files of pytest-benchmark (`--benchmark-json`)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from corebound.exchange import result_files
from corebound.exchange.reading import Unreadable, reporting_damage
from corebound.records.history import EnvironmentKey, Series
from corebound.records.run_record import Commit

_S = 1e9
# How pytest-benchmark writes a value that JSON does not have, with its address.
_UNWRITABLE = "UNSERIALIZABLE["


def read(path: Path, context: result_files.Context) -> Iterable[Series | Unreadable]:
    """Read every benchmark of a file.

    All rounds of a benchmark run in one process, so the median of its rounds is one launch.

    Raises:
        Unreadable: The file is damaged or in another format.
    """
    content = result_files.read_json(path)
    machine = content.get("machine_info") if isinstance(content, dict) else None
    if not isinstance(machine, dict):
        raise Unreadable(
            "not a file of pytest-benchmark.", "Write it with `pytest --benchmark-json FILE`."
        )
    with reporting_damage():
        at = context.moment(content.get("datetime"))
        commit = _commit(content.get("commit_info") or {}, at)
    benchmarks = content.get("benchmarks")
    rows = benchmarks if isinstance(benchmarks, list) else []
    keys = Counter(_key(row) for row in rows if isinstance(row, dict) and "name" in row)

    def series(benchmark: Mapping[str, Any]) -> Series:
        key = _key(benchmark)
        scenario, cell = key if keys[key] == 1 else _key(benchmark, by_id=True)
        stats = benchmark.get("stats")
        failed = "failed" if benchmark.get("has_error") else None
        point = result_files.point_of(
            [] if failed else [stats.get("median") if isinstance(stats, Mapping) else None],
            scale=_S,
            at=at,
            commit=context.commit or commit,
            environment_key=_environment(machine, benchmark.get("options") or {}),
            missing=failed,
        )
        host = machine.get("node")
        return result_files.series_of(context, [point], scenario=scenario, cell=cell, host=host)

    return result_files.each_row(benchmarks, series)


def _key(benchmark: Mapping[str, Any], *, by_id: bool = False) -> tuple[str, str]:
    """The test, and its parameters: their values, or pytest's id of them.

    pytest-benchmark cannot write every value, and different values can look alike.
    """
    test, _, in_brackets = str(benchmark.get("fullname") or benchmark["name"]).partition("[")
    param = benchmark.get("param") or in_brackets.removesuffix("]")
    params = benchmark.get("params")
    is_written = isinstance(params, dict) and not any(
        str(value).startswith(_UNWRITABLE) for value in params.values()
    )
    if params and is_written and not by_id:
        return test, result_files.key_of(params)
    return test, result_files.key_of({"param": param} if param else {})


def _environment(machine: Mapping[str, Any], options: Mapping[str, Any]) -> EnvironmentKey:
    cpu = machine.get("cpu") or {}
    if not isinstance(cpu, Mapping):
        cpu = {"brand_raw": cpu}
    return result_files.environment_of(
        {
            "cpu": cpu.get("brand_raw") or cpu.get("brand"),
            "kernel": machine.get("release"),
            "python": " ".join(
                str(machine[name])
                for name in ("python_implementation", "python_version")
                if machine.get(name)
            ),
            "timer": options.get("timer"),
            "garbage collection": "off" if options.get("disable_gc") else "on",
        }
    )


def _commit(commit: Mapping[str, Any], at: str) -> Commit | None:
    # `time` has the author's or the committer's zone, and may be absent.
    return result_files.commit_of(
        commit.get("id"),
        at=result_files.committed_at(commit.get("time"), at),
        dirty=bool(commit.get("dirty")),
    )
