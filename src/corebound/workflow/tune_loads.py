"""`corebound tune --each` without a terminal: a race for each load, and one setting for all."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.tuning import TuneResult, analyse_tuning
from corebound.analysis.tuning_loads import (
    LoadsResult,
    common_document,
    load_text,
    loads_result,
)
from corebound.analysis.tuning_text import names
from corebound.errors import InputError
from corebound.workflow.execute import Reporter, execute_run, hold_host
from corebound.workflow.host_checks import preflight
from corebound.workflow.scenarios import LoadedScenario
from corebound.workflow.tune import TuneOutcome, TuneRequest, load_one, race
from corebound.workflow.tune_verify import again
from corebound.workflow.tunings import stored_checks

# Of the budget; the rest is for launches of the common configuration.
_RACES_SHARE = 0.85


class LoadsOutcome(Struct, frozen=True, kw_only=True):
    """The result of each load's race, and what they say together."""

    outcomes: tuple[TuneOutcome, ...]
    loads: LoadsResult

    @property
    def document(self) -> dict[str, Any]:
        """The result as plain data, as `--json` prints it."""
        outcomes = [outcome.document for outcome in self.outcomes]
        return {"common": common_document(self.loads), "loads": outcomes}


def tune_loads(
    request: TuneRequest,
    each: Sequence[str],
    reporter: Reporter,
    *,
    unlocked: bool = False,
    wait_s: float = 0.0,
) -> LoadsOutcome:
    """Race the configurations for each load, then check whether one configuration does for all.

    Args:
        request: The user's request; its budget is for all loads together.
        each: The parameters whose values make the loads.
        reporter: Shows the progress.
        unlocked: Whether to measure beside other runs.
        wait_s: How long to wait for another run on this host, in seconds.

    Raises:
        InputError: The scenario does not vary one of these parameters.
        CoreboundError: The scenario or the host does not allow it.
    """
    loads = _loads(load_one(request), tuple(dict.fromkeys(each)))
    begin_s = time.monotonic()

    def left_s(share: float) -> float | None:
        if request.budget_s is None:
            return None
        return max(share * request.budget_s - (time.monotonic() - begin_s), 0.0)

    outcomes = []
    with ExitStack() as stack:
        hold_host(stack, reporter.notify, unlocked=unlocked, wait_s=wait_s)
        for index, load in enumerate(loads):
            left = left_s(_RACES_SHARE)
            of_load = replace(
                request,
                load=load,
                budget_s=None if left is None else left / (len(loads) - index),
                out=request.out / "-".join(f"{name}-{value}" for name, value in load),
            )
            outcome = race(of_load, reporter)
            outcomes.append(outcome)
        results = [outcome.result for outcome in outcomes]
        checks = stored_checks(request.run.records, results, [])
        together = loads_result(results, checks)
        for result, key in together.unchecked:
            checks.setdefault(result.run.id, []).append(
                _check(result, key, request, left_s(1.0), reporter)
            )
    return LoadsOutcome(outcomes=tuple(outcomes), loads=loads_result(results, checks))


def _loads(
    loaded: LoadedScenario, each: tuple[str, ...]
) -> tuple[tuple[tuple[str, str], ...], ...]:
    """The values of these parameters that cells have together, in their order."""
    for name in each:
        values = {dict(cell.axes)[name] for cell in loaded.cells if name in dict(cell.parameters)}
        if not values:
            raise InputError(
                what=f"the scenario does not vary the parameter `{name}`.",
                where=f"--each {name}",
                fix="Name a parameter with several values in `matrix.parameters`.",
            )
    return tuple(
        dict.fromkeys(
            tuple((name, dict(cell.axes)[name]) for name in each) for cell in loaded.cells
        )
    )


def _check(
    result: TuneResult, key: str, request: TuneRequest, budget_s: float | None, reporter: Reporter
) -> TuneResult:
    """Launch the recommended configuration of a load and the common one, as after a race."""
    recommended = result.recommended
    if recommended is None:
        raise ValueError("only a load with a recommendation has a common configuration")
    reporter.notify(
        f"Comparing {names(result)[recommended.key]} with {names(result)[key]}"
        f" for {load_text(result.tuning)}."
    )
    prepared = again(result, {recommended.key, key}, recommended, request.run, reporter.notify)
    with ExitStack() as running:
        launched = execute_run(preflight(prepared, reporter), budget_s, reporter, running)
    return analyse_tuning(launched.run, launched.launches)
