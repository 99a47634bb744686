"""`corebound tune --verify` without a terminal: does a recommendation still hold?"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.tuning import TuneResult, analyse_tuning
from corebound.errors import Fault, InputError
from corebound.machine import discovery, identity
from corebound.records import documents, jsonl
from corebound.records.tuning import Objective, Tuning
from corebound.runner import Task
from corebound.scenario.cell import Cell
from corebound.scenario.loader import load_document
from corebound.scenario.matrix import expand
from corebound.workflow.execute import Reporter, execute_run, hold_host
from corebound.workflow.host_checks import preflight
from corebound.workflow.prepare import PreparedRun, RunRequest, plan_run
from corebound.workflow.projects import Notify
from corebound.workflow.reproduce import environment_differences, host_differences
from corebound.workflow.scenarios import LoadedScenario, load_scenarios
from corebound.workflow.tunings import StoredTuning, latest_tunings

Answer = Literal["holds", "lost", "inconclusive"]


class VerifyResult(Struct, frozen=True, kw_only=True):
    """A recommendation that was measured again.

    Attributes:
        before, now: The race, and the new launches of its finalists.
        recommended: What the race recommended.
        better: What beats it now; None if nothing does.
        differences: What changed on the host and in the environment since.
        answer: Whether the recommendation holds.
        records: The file of the new launches.
    """

    before: TuneResult
    now: TuneResult
    recommended: Cell
    better: Cell | None
    differences: tuple[str, ...]
    answer: Answer
    records: Path


def verify_tuning(
    request: RunRequest,
    objective: Objective,
    reporter: Reporter,
    *,
    unlocked: bool = False,
    wait_s: float = 0.0,
) -> VerifyResult:
    """Launch the finalists of the latest race again, as often as its fresh launches.

    Args:
        request: The scenario file and the options of any run.
        objective: The race's objective.
        reporter: Shows the progress.
        unlocked: Whether to measure beside other runs.
        wait_s: How long to wait for another run on this host, in seconds.

    Raises:
        InputError: This host has no recommendation for the scenario.
        CoreboundError: The host does not allow the run.
    """
    with ExitStack() as stack:
        hold_host(stack, reporter.notify, unlocked=unlocked, wait_s=wait_s)
        stored = _latest(request, objective, reporter.notify)
        before = analyse_tuning(stored.run, jsonl.read(stored.file).launches)
        recommended = before.recommended
        if recommended is None or before.standing.finalists is None:
            raise InputError(
                what="the latest race recommends nothing.",
                where=str(stored.file),
                fix="Complete it with `corebound tune FILE --resume`, or start a new one.",
            )
        finalists = {recommended.key, *before.standing.finalists.keys}
        prepared = again(before, finalists, recommended, request, reporter.notify)
        differences = (
            *host_differences(before.run),
            *environment_differences(recommended, before.run, prepared.run),
        )
        for difference in differences:
            reporter.notify(f"Changed since the race: {difference}")
        result = execute_run(preflight(prepared, reporter), None, reporter, stack)
    now = analyse_tuning(result.run, result.launches)
    return VerifyResult(
        before=before,
        now=now,
        recommended=recommended,
        better=_better(now),
        differences=tuple(differences),
        answer=_answer(before, now),
        records=result.file,
    )


def _latest(request: RunRequest, objective: Objective, notify: Notify) -> StoredTuning:
    """The latest race of the file's scenario on this host."""
    loaded = load_scenarios(request.files, request.only, request.profile)
    names = {one.scenario.name for one in loaded}
    selected = {axis for one in loaded for cell in one.cells for axis in cell.axes}
    host = identity.host(discovery.live_topology()).id
    faults: list[Fault] = []
    found = [
        stored
        for stored in latest_tunings(request.records, faults)
        if stored.run.host.id == host
        and stored.run.scenarios[0].document["name"] in names
        and stored.run.tuning is not None
        and stored.run.tuning.objective == objective
        and selected.issuperset(stored.run.tuning.load)
    ]
    for fault in faults:
        notify(f"warning: {fault}")
    if not found:
        raise InputError(
            what=f"no race of {' or '.join(sorted(names))} for {objective} on this host.",
            where=str(documents.tunes_folder(request.records)),
            fix="Run `corebound tune FILE` first.",
        )
    if len({stored.run.tuning.load for stored in found if stored.run.tuning is not None}) > 1:
        notify("This verifies the latest race. Select the load of another one with `--only`.")
    return found[-1]


def again(
    before: TuneResult,
    keys: Collection[str],
    recommended: Cell,
    request: RunRequest,
    notify: Notify,
) -> PreparedRun:
    """A run of some cells of a race alone, as often as its fresh launches.

    Args:
        before: The race.
        keys: The keys of the cells.
        recommended: The one that the others are compared with.
        request: The options of any run.
        notify: Reports what a user should know.
    """
    document, path = before.source.document, before.source.path
    cells = expand(load_document(document, path), path)
    # The matrix of a race has nothing but includes, one for each cell.
    entries = [
        entry
        for entry, cell in zip(document["matrix"]["include"], cells, strict=True)
        if cell.key in keys
    ]
    baseline = document["baseline"] if document["baseline"] in entries else entries[0]
    document = {**document, "matrix": {"include": entries}, "baseline": baseline}
    scenario = load_document(document, path)
    loaded = LoadedScenario(path=Path(path), scenario=scenario, cells=expand(scenario, path))
    run, (task,) = plan_run((loaded,), replace(request, profile=None, only=()), notify)
    tuning = Tuning(
        objective=before.tuning.objective,
        rule=before.tuning.rule,
        verifies=before.run.id,
        recommended=recommended.key,
        load=before.tuning.load,
    )
    run = replace(run, tuning=tuning)
    return PreparedRun(
        run=run,
        file=jsonl.file_of(run, documents.tunes_folder(request.records)),
        tasks=(Task(scenario=task.scenario, planned=task.planned, tuning=tuning),),
    )


def _better(now: TuneResult) -> Cell | None:
    """The finalist that certainly beats the recommended one, by more than the margin; the best."""
    ratios = {
        one.cell.key: (one.comparison.speedup_ratio, one.cell)
        for one in now.confirmed
        if one.comparison is not None
        and one.comparison.interval is not None
        and one.comparison.interval.high < 1
        and one.comparison.speedup_ratio < 1 / (1 + now.tuning.rule.margin)
    }
    return min(ratios.values(), key=lambda pair: pair[0])[1] if ratios else None


def _answer(before: TuneResult, now: TuneResult) -> Answer:
    """Whether the recommendation holds.

    A configuration other than the default must still be faster than the default; the default must
    not be beaten.
    """
    winner = now.confirmed[0] if now.confirmed else None
    if _better(now) is not None or winner is None or winner.summary.median_ns is None:
        return "lost"
    if before.advice != "change":
        return "holds"
    against = now.against(now.contest.default)
    verdict = against.verdict if against is not None else "faster"
    answers: dict[str, Answer] = {"faster": "holds", "undecided": "inconclusive"}
    return answers.get(verdict, "lost")
