"""Measure a recorded result again, from a script or a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from corebound.api.reporter import CallReporter
from corebound.api.results import Results, of_files
from corebound.api.shown import Shown
from corebound.records.jsonl import RECORDS
from corebound.stats.intervals import Ends
from corebound.workflow.options import request_of
from corebound.workflow.projects import CONFIG
from corebound.workflow.reproduce import ReproduceRequest, reproduce_result


class Reproduction(Shown, frozen=True, kw_only=True):
    """Whether a recorded result holds.

    Attributes:
        scenario: The scenario.
        cell: The configuration, such as `binding=none,threads=2`.
        axes: The same by axis; values are text.
        holds: Whether the result holds; None if the launches do not decide.
        verdict: The new result relative to the recorded one.
        recorded_ns: The recorded time of an iteration, in nanoseconds.
        now_ns: The time now.
        slowdown_ratio: The time now over the recorded one.
        slowdown_interval: Its 95 % confidence interval, (low, high); None with too few launches.
        margin: The largest share that counts as equal.
        differences: What differs in the host and the environment; empty unless `anyway`.
        results: The recorded run, and the new one.
        document: The same as plain data, as `corebound reproduce --json` prints it.
    """

    shown: ClassVar = (
        "scenario", "cell", "holds", "verdict", "slowdown_ratio", "slowdown_interval",
        "differences",
    )  # fmt: skip

    scenario: str
    cell: str
    axes: Mapping[str, str]
    holds: bool | None
    verdict: Literal["faster", "slower", "equivalent", "inconclusive"]
    recorded_ns: float
    now_ns: float
    slowdown_ratio: float
    slowdown_interval: Ends | None
    margin: float
    differences: tuple[str, ...]
    results: Results
    document: Mapping[str, Any]


def reproduce(
    record: str | PathLike[str],
    cell: str | None = None,
    *,
    launches: Annotated[int, Field(ge=2, le=1000)] | None = None,
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
    document = result.document
    return Reproduction(
        scenario=result.cell.scenario,
        cell=result.cell.key,
        axes=dict(result.cell.axes),
        holds=result.holds,
        verdict=result.comparison.verdict,
        recorded_ns=result.medians_ns[0],
        now_ns=result.medians_ns[1],
        slowdown_ratio=document["slowdown_ratio"],
        slowdown_interval=document["slowdown_interval"],
        margin=result.margin,
        differences=result.differences,
        results=of_files(result.records),
        document=document,
    )
