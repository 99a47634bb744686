"""Import files of pytest-benchmark (`--benchmark-json`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corebound.exchange.reading import Unreadable, parse_json, reporting_damage
from corebound.exchange.result_files import (
    Context,
    commit_of,
    environment_of,
    key_of,
    point_of,
    series_of,
)
from corebound.records.history import EnvironmentKey, Series
from corebound.records.run_record import Commit

_S = 1e9


def read(path: Path, context: Context) -> Sequence[Series]:
    """Read every benchmark of a file.

    All rounds of a benchmark run in one process, so the median of its rounds is one launch.

    Raises:
        Unreadable: The file is damaged or in another format.
    """
    content = parse_json(path.read_bytes())
    with reporting_damage():
        if not isinstance(content, dict) or "machine_info" not in content:
            raise Unreadable(
                "not a file of pytest-benchmark.", "Write it with `pytest --benchmark-json FILE`."
            )
        at = context.moment(content.get("datetime"))
        commit = context.commit or _commit(content.get("commit_info") or {}, at)
        machine = content["machine_info"]
        host = context.host_name(machine.get("node"))
        return [
            _series(benchmark, context, host, at=at, commit=commit, machine=machine)
            for benchmark in content["benchmarks"]
        ]


def _series(
    benchmark: Mapping[str, Any],
    context: Context,
    host: str,
    *,
    at: str,
    commit: Commit | None,
    machine: Mapping[str, Any],
) -> Series:
    name = str(benchmark.get("fullname") or benchmark["name"])
    params = benchmark.get("params") or (
        {"param": benchmark["param"]} if benchmark.get("param") else {}
    )
    stats = benchmark["stats"]
    return series_of(
        context,
        [
            point_of(
                [float(stats["median"]) * _S],
                at=at,
                commit=commit,
                environment_key=_environment(machine, benchmark.get("options") or {}),
            )
        ],
        host=host,
        scenario=name.partition("[")[0],
        cell=key_of(params),
    )


def _environment(machine: Mapping[str, Any], options: Mapping[str, Any]) -> EnvironmentKey:
    cpu = machine.get("cpu") or {}
    if not isinstance(cpu, Mapping):
        cpu = {"brand_raw": cpu}
    return environment_of(
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
    return commit_of(commit.get("id"), at=at, dirty=bool(commit.get("dirty")))
