"""Find the configuration to use on this host, from a script or a notebook."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from corebound.analysis.tuning_text import headline
from corebound.api import comparison as compared
from corebound.api.arguments import Budget, in_python
from corebound.api.comparison import ComparedRow
from corebound.api.measure import CallReporter
from corebound.api.results import Results, of_files
from corebound.api.shown import Shown
from corebound.records.jsonl import RECORDS
from corebound.records.tuning import Objective
from corebound.scenario.models import ProfileName
from corebound.workflow.prepare import RunRequest
from corebound.workflow.tune import TuneRequest, tune_scenario


class Tuning(Shown, frozen=True, kw_only=True):
    """The configuration to use on this host.

    Attributes:
        scenario: The scenario.
        cell: The recommended configuration, such as `binding=node,threads=2`; None without one.
        axes: The same by axis; values are text. Empty without one.
        default: The configuration of a program that sets nothing; None if it did not take part.
        headline: The recommendation in one sentence.
        rows: The recommended configuration compared with each other finalist, from fresh launches
            alone; the row's `cell` is that finalist, and above 1 the recommended one is better.
        results: The race and the fresh launches.
        document: The same as plain data, as `corebound tune --json` prints it.
    """

    scenario: str
    cell: str | None
    axes: Mapping[str, str]
    default: str | None
    headline: str
    rows: tuple[ComparedRow, ...]
    results: Results
    document: Mapping[str, Any]

    def __str__(self) -> str:
        """The headline, and a line for each finalist."""
        return "\n".join((self.headline, *(f"  {row}" for row in self.rows)))

    def _repr_html_(self) -> str:
        from corebound.api import notebook

        return notebook.tuning_html(self)


def tune(
    file: str | PathLike[str],
    *,
    objective: Objective = "latency",
    bound_ms: float | None = None,
    only: Sequence[str] = (),
    vary: Sequence[str] = (),
    max_candidates: int = 16,
    profile: ProfileName | None = None,
    budget_s: Budget | None = None,
    resume: bool = False,
    records: str | PathLike[str] = RECORDS,
    wait_s: float = 60.0,
    notify: Callable[[str], object] | None = None,
) -> Tuning:
    """Race the configurations of a scenario on this host, as `corebound tune` does.

    Args:
        file: A scenario file.
        objective: What to compare: `latency`, `throughput`, or `rate` of a server.
        bound_ms: The latency that 99 % of requests may take, in milliseconds; `rate` needs it.
        only: The cells to race; bindings, threads and wait policies are added.
        vary: Parameters of the workload that may change, because they do not change its work.
        max_candidates: How many configurations take part, at most.
        profile: `quick` or `nightly`; None uses the scenario's own numbers.
        budget_s: The time for all launches, in seconds; None is no limit.
        resume: Whether to continue an interrupted race of the same configurations.
        records: The folder of records, where the run is kept.
        wait_s: How long to wait for another run on this host, in seconds.
        notify: Called with each line about the progress; `print` shows them.

    Raises:
        CoreboundError: The scenario or the host does not allow it.
    """
    request = TuneRequest(
        run=RunRequest(
            files=(Path(file),), profile=profile, only=tuple(only), records=Path(records)
        ),
        objective=objective,
        bound_ms=bound_ms,
        vary=tuple(vary),
        max_candidates=max_candidates,
        budget_s=budget_s,
        resume=resume,
    )
    outcome = tune_scenario(request, CallReporter(notify), wait_s=wait_s)
    recommended = outcome.result.recommended
    return Tuning(
        scenario=str(outcome.result.source.document["name"]),
        cell=recommended.key if recommended is not None else None,
        axes=dict(recommended.axes) if recommended is not None else {},
        default=outcome.result.contest.default,
        headline=in_python(headline(outcome.result), inspect.signature(tune)),
        rows=compared.of_finalists(outcome.result),
        results=of_files([outcome.records]),
        document=outcome.document,
    )
