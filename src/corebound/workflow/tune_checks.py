"""Launch what races recommend again, later: whether it still holds."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.json_documents import attributes
from corebound.analysis.tuning import TuneResult, analyse_tuning
from corebound.analysis.tuning_checks import (
    Answer,
    Verification,
    verification,
)
from corebound.errors import Fault, InputError, ScenarioFaults, collect_fault
from corebound.machine import discovery, identity
from corebound.present.tune import finalists_document, load_text, verification_text
from corebound.records import documents, jsonl
from corebound.records.race import RaceSetup
from corebound.records.run_record import Run
from corebound.runner import Task
from corebound.scenario.cell import Cell
from corebound.scenario.loader import load_document
from corebound.scenario.matrix import expand
from corebound.workflow.changed_conditions import environment_differences, host_differences
from corebound.workflow.execute import NO_LIMIT, Reporter, execute_run, hold_host_for
from corebound.workflow.host_checks import preflight
from corebound.workflow.prepare import PreparedRun, RunRequest, plan_run
from corebound.workflow.projects import Notify
from corebound.workflow.scenarios import LoadedScenario, load_scenarios
from corebound.workflow.tune_request import TuneRequest
from corebound.workflow.tunings import latest_tunings


class VerifyResult(Struct, frozen=True, kw_only=True):
    """Whether a recommendation still holds.

    Attributes:
        verification: The race, and the new launches of its finalists.
        differences: What changed on the host and in the environment since.
        records: The file of the new launches.
    """

    verification: Verification
    differences: tuple[str, ...]
    records: Path

    @property
    def title(self) -> str:
        """The scenario, with the objective and the load of the race if it has one."""
        before = self.verification.before
        document, tuning = before.source.document, before.tuning
        parts = (
            str(document.get("title") or document["name"]),
            tuning.objective if tuning.objective != "latency" else "",
            load_text(tuning) if tuning.load else "",
        )
        return ", ".join(filter(None, parts))

    @property
    def answer(self) -> Answer:
        """`holds`, `lost`, or `inconclusive`."""
        return self.verification.answer

    @property
    def text(self) -> str:
        """The answer in a sentence or two."""
        return verification_text(self.verification)

    @property
    def cell(self) -> str:
        """What the race recommended."""
        return self.verification.recommended.key

    @property
    def better(self) -> str | None:
        """The configuration that beats it now; None if none does."""
        return self.verification.better.key if self.verification.better else None

    @property
    def document(self) -> dict[str, Any]:
        """One of the `recommendations` that `corebound tune --verify --json` prints."""
        return {
            **attributes(self, "title", "answer", "text"),
            "recommended": self.cell,
            **attributes(self, "better", "differences"),
            "race": self.verification.before.run.id,
            "run": self.verification.now.run.id,
            **attributes(self, "records"),
            "finalists": finalists_document(self.verification.now),
        }


def verify_recommendations(request: TuneRequest, reporter: Reporter) -> tuple[VerifyResult, ...]:
    """Launch the finalists of the latest races again, as often as their fresh launches.

    Args:
        request: The scenario files, or folders of them; without an objective, the races of each.

    Returns:
        One result for each scenario, objective and load with a recommendation; at least one.

    Raises:
        InputError: This host has no recommendation for these scenarios.
        CoreboundError: The host does not allow the runs.
    """
    with hold_host_for(request, reporter.notify, lambda: _races(request, reporter.notify)):
        races = _races(request, reporter.notify)
        verified, errors = [], []
        for race in races:
            try:
                verified.append(_measure_again(race, request, reporter))
            except InputError as error:
                errors.append(error)
    if not verified:
        raise errors[-1]
    for skipped in errors:
        reporter.notify(f"warning: {skipped}")
    return tuple(verified)


def _measure_again(
    stored: jsonl.StoredRun, request: RunRequest, reporter: Reporter
) -> VerifyResult:
    """Launch the finalists of a race again."""
    faults: list[Fault] = []
    before = None
    with collect_fault(stored.file, faults, what="this race"):
        before = analyse_tuning(stored.run, jsonl.read(stored.file).launches)
    if faults or before is None:
        raise ScenarioFaults(tuple(faults))
    recommended = before.recommended
    if recommended is None or before.race_state.finalists is None:
        raise InputError(
            what=f"the latest race of {_name(stored.run)} recommends nothing.",
            where=str(stored.file),
            fix="Complete it with `corebound tune FILE --resume`, or start a new one.",
        )
    finalists = {recommended.key, *before.race_state.finalists.keys}
    prepared = again(before, finalists, recommended, request, reporter.notify)
    result = execute_run(preflight(prepared, reporter), NO_LIMIT, reporter)
    now = analyse_tuning(result.run, result.launches)
    return VerifyResult(
        verification=verification(before, now),
        differences=(
            *host_differences(before.run),
            *environment_differences(recommended, before.run, prepared.run),
        ),
        records=result.file,
    )


def _races(request: TuneRequest, notify: Notify) -> Sequence[jsonl.StoredRun]:
    """The latest races of the scenarios on this host, of each selected load."""
    loaded = load_scenarios(request.files, request.only, request.profile)
    scenarios = {scenario.scenario.name for scenario in loaded}
    selected = {axis for scenario in loaded for cell in scenario.cells for axis in cell.axes}
    host = identity.host(discovery.live_topology()).id
    faults: list[Fault] = []
    found = [
        stored
        for stored in latest_tunings(request.records, faults)
        if stored.run.host.id == host
        and _name(stored.run) in scenarios
        and stored.run.tuning is not None
        and request.objective in (None, stored.run.tuning.objective)
        and selected.issuperset(stored.run.tuning.load)
    ]
    for fault in faults:
        notify(f"warning: {fault}")
    if not found:
        of = f" for {request.objective}" if request.objective else ""
        raise InputError(
            what=f"no race{of} of these scenarios on this host.",
            where=str(documents.tunes_folder(request.records)),
            fix="Run `corebound tune FILE` first.",
        )
    return found


def _name(run: Run) -> str:
    return str(run.scenarios[0].document["name"])


def again(
    before: TuneResult,
    keys: Collection[str],
    recommended: Cell,
    request: RunRequest,
    notify: Notify,
) -> PreparedRun:
    """A run of some cells of a race alone, as often as its fresh launches.

    Args:
        recommended: The one that the others are compared with.
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
    tuning = RaceSetup(
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
