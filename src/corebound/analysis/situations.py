"""Groups scenarios by what a visitor does, so that one can look up an answer by situation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import varying_axes
from corebound.scenario.builtin_workloads import BUILT_IN

_OWN_CODE = "I run code of my own"
# Situations that follow from the configurations themselves, whatever the workload.
_BY_CONFIGURATIONS: dict[str, Callable[[ScenarioResult], bool]] = {
    "I handle one item at a time": lambda result: _has_parameter(result, "batch", 1),
    "I run several processes on one host": lambda result: any(
        cell.workers > 1 or dict(cell.parameters).get("processes", 1) != 1
        for cell in result.planned
    ),
    "I choose a framework, a library or a version": lambda result: (
        not {
            "environment",
            "framework",
            "blas",
        }.isdisjoint(varying_axes(result.planned))
    ),
    "I choose a precision": lambda result: "dtype" in varying_axes(result.planned),
}


def by_situation(
    results: Iterable[ScenarioResult],
) -> tuple[tuple[str, tuple[ScenarioResult, ...]], ...]:
    """The scenarios that answer somebody's questions, by situation: `I train a network`.

    A scenario may answer in several situations. What the workload does comes first, then what the
    configurations differ in; scenarios keep their order.
    """
    groups: dict[str, list[ScenarioResult]] = {}
    every = tuple(results)
    for result in every:
        groups.setdefault(_of_workload(result), []).append(result)
    ordered = sorted(groups.items(), key=lambda group: _place(group[0]))
    ordered += [
        (situation, [result for result in every if holds(result)])
        for situation, holds in _BY_CONFIGURATIONS.items()
    ]
    return tuple((situation, tuple(own)) for situation, own in ordered if own)


def _of_workload(result: ScenarioResult) -> str:
    workload = result.scenario.workload
    built_in = BUILT_IN.get(workload) if isinstance(workload, str) else None
    return built_in.situation if built_in else _OWN_CODE


def _place(situation: str) -> int:
    """The place of a workload's situation: in the order of the table of workloads."""
    situations: Sequence[str] = [built_in.situation for built_in in BUILT_IN.values()]
    return situations.index(situation) if situation in situations else len(situations)


def _has_parameter(result: ScenarioResult, name: str, value: object) -> bool:
    return any(dict(cell.parameters).get(name) == value for cell in result.planned)
