"""Measure a recorded result again, from a script or a notebook."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import ClassVar

from msgspec.structs import asdict

from corebound.api.reporter import CallReporter
from corebound.api.results import Results, of_files
from corebound.present.shown import Shown
from corebound.records.jsonl import RECORDS
from corebound.workflow.options import request_of
from corebound.workflow.projects import CONFIG
from corebound.workflow.reproduce import ReproduceRequest, ReproduceResult, reproduce_result


class Reproduction(Shown, ReproduceResult, frozen=True, kw_only=True):
    """Whether a recorded result holds.

    Attributes:
        margin: The largest share that counts as equal.
        differences: What differs in the host and the environment; empty unless `anyway`.
        results: The recorded run, and the new one.
    """

    shown: ClassVar = (
        "scenario", "cell", "holds", "verdict", "slowdown_ratio", "slowdown_interval",
        "differences",
    )  # fmt: skip

    results: Results


def reproduce(
    record: str | PathLike[str],
    cell: str | None = None,
    *,
    launches: int | None = None,
    anyway: bool = False,
    config: str | PathLike[str] = CONFIG,
    records: str | PathLike[str] = RECORDS,
    unlocked: bool = False,
    wait_s: float = 60.0,
    notify: Callable[[str], object] | None = None,
) -> Reproduction:
    """Measure a recorded result again under the same conditions, as `corebound reproduce` does.

    Args:
        record: The file of a run, or the start of its id; `ID:CELL` names the cell, too.
        cell: The key or the id of the cell, if the run has several.
        launches: The number of launches; None uses as many as were recorded.
        anyway: Whether to measure even if the host or the environment differs.
        config: The asv.conf.json of the project under test.
        records: The folder of records.
        unlocked: Whether to measure even if another run is active.
        wait_s: How long to wait for another run on this host, in seconds.
        notify: Called with each line about the progress; `print` shows them.

    Raises:
        InputError: No run or no cell matches, or several do.
        HostError: The host or the environment differs, or the commit is not available.
        LaunchError: No launch succeeded.
    """
    request = request_of(ReproduceRequest, locals(), record=str(record))
    result = reproduce_result(request, CallReporter(notify))
    return Reproduction(**asdict(result), results=of_files(result.records))
