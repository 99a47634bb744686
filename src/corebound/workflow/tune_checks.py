"""Launch what a race recommends again: later, and through the files that set it."""

import secrets
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from corebound import clock
from corebound.analysis.json_documents import attributes
from corebound.analysis.tuning import TuneResult, analyse_tuning
from corebound.analysis.tuning_checks import (
    DIRECT,
    THROUGH_AXIS,
    Answer,
    ArtefactProof,
    Verification,
    launched_proof,
    verification,
)
from corebound.errors import Fault, InputError, ScenarioFaults, collect_fault, report_os_errors
from corebound.machine import discovery, identity
from corebound.planning.artefacts import OF_FRAMEWORKS, Artefact, ArtefactKind, artefacts, fits
from corebound.planning.commands import WORKER
from corebound.planning.models import Command
from corebound.planning.plan import AnyWorkload, PlannedCell, own_program, shorten
from corebound.present.tune import finalists_document, load_text, verification_text
from corebound.records import atomic_write, documents, jsonl
from corebound.records.launch_record import Launch
from corebound.records.race import RaceSetup
from corebound.records.run_record import Run
from corebound.runner import Task
from corebound.scenario.cell import Cell
from corebound.scenario.loader import load_document
from corebound.scenario.matrix import expand
from corebound.scenario.runtimes import FRAMEWORKS
from corebound.workflow.artefact_checks import check_artefact
from corebound.workflow.conditions import environment_differences, host_differences
from corebound.workflow.execute import NO_LIMIT, Budget, Reporter, execute_run, hold_host_for
from corebound.workflow.host_checks import preflight
from corebound.workflow.prepare import PreparedRun, RunRequest, plan_run
from corebound.workflow.projects import Notify
from corebound.workflow.scenarios import LoadedScenario, load_scenarios
from corebound.workflow.tune_request import TuneRequest
from corebound.workflow.tunings import latest_tunings

# The files that launches go through.
THROUGH: frozenset[ArtefactKind] = frozenset({"shell", "env", "python"})
_LAUNCHES = 4
# Passes the variables of a file on.
_WITH_FILE = 'set -a; . "$0"; set +a; exec "$@"'
_THEN_WORK = (
    "\nimport runpy\nrunpy.run_module('corebound.worker', run_name='__main__', alter_sys=True)\n"
)


def write_artefacts(
    planned: PlannedCell,
    workload: AnyWorkload,
    kinds: Sequence[ArtefactKind],
    folder: Path,
    *,
    about: Sequence[str],
    notify: Notify,
) -> tuple[Artefact, ...]:
    """Write the artefacts of a configuration into a folder, and say why a kind has none.

    Raises:
        InputError: The folder cannot be written.
    """
    if planned.placement is None:
        raise ValueError("a recommended configuration was launched")
    found = partial(
        artefacts,
        planned.cell,
        planned.placement,
        planned.commands,
        program=own_program(workload, planned.cell, planned.placement),
        about=about,
    )
    written = found(kinds)
    can = ", ".join(dict.fromkeys(artefact.kind for artefact in written or found()))
    for kind in kinds:
        if not fits(kind, planned.cell.framework):
            names = [name for name in OF_FRAMEWORKS[kind] if name in FRAMEWORKS[1:]]
            without = "servers of your own, and commands and functions without a framework"
            what = f"cells of {' and '.join(names)}" if names else without
            notify(f"Not written: `{kind}` is for {what}.")
        elif all(artefact.kind != kind for artefact in written):
            others = f" These do: {can}." if can else ""
            notify(f"Not written: `{kind}` can set nothing of this configuration.{others}")
    for artefact in written:
        file = folder / artefact.file
        with report_os_errors(
            "the file cannot be written", where=file, fix="Choose another folder with --out."
        ):
            atomic_write.put(file, artefact.text.encode())
            if artefact.readme:
                atomic_write.put(file.with_name(f"{file.name}.README"), artefact.readme.encode())
    return written


def prove(
    run: Run,
    task: Task,
    planned: PlannedCell,
    written: Sequence[Artefact],
    *,
    records: Path,
    folder: Path,
    budget: Budget,
    reporter: Reporter,
) -> tuple[ArtefactProof, ...]:
    """Launch through the artefacts of a configuration, and check the syntax of the others."""
    through = {
        artefact.kind: command
        for artefact in written
        if (command := _command_through(artefact, planned, folder)) is not None
    }
    launches: Sequence[Launch] = ()
    if through:
        if (left_s := budget.left_s) is not None:
            most_s = max(left_s, 0.0) / (_LAUNCHES * (1 + len(through)))
            planned = shorten(planned, most_s / 2, iterations=None)
        prepared = _proof_run(run, task, planned, through, records)
        launches = execute_run(prepared, budget, reporter).launches
    return tuple(
        launched_proof(
            artefact,
            launches,
            warmup=planned.measure.warmup,
            margin=planned.measure.margin,
        )
        if artefact.kind in through
        else check_artefact(
            artefact, python=planned.python or planned.commands[0].argv[-1 - len(WORKER)]
        )
        for artefact in written
    )


def _command_through(artefact: Artefact, planned: PlannedCell, folder: Path) -> Command | None:
    """The command that starts a worker through an artefact; None if that is not possible here."""
    if len(planned.commands) > 1 or planned.traffic is not None or artefact.kind not in THROUGH:
        return None
    (command,) = planned.commands
    file = str((folder / artefact.file).resolve())
    python, *worker = command.argv[-1 - len(WORKER) :]
    if artefact.kind == "shell":
        return Command(argv=("sh", file, python, *worker), env=())
    if artefact.kind == "env":
        return Command(argv=("sh", "-c", _WITH_FILE, file, *command.argv), env=())
    binds_memory = planned.placement is not None and planned.placement.memory != "default"
    if binds_memory:
        return None
    return Command(argv=(python, "-c", artefact.text + _THEN_WORK), env=())


def _proof_run(
    run: Run,
    task: Task,
    planned: PlannedCell,
    through: Mapping[ArtefactKind, Command],
    records: Path,
) -> PreparedRun:
    launches = planned.measure.launches.model_copy(update={"min": _LAUNCHES, "max": _LAUNCHES})
    measure = planned.measure.model_copy(update={"launches": launches})
    commands: dict[str, Command] = {DIRECT: planned.commands[0]}
    commands |= {str(kind): command for kind, command in through.items()}
    cells = tuple(
        replace(
            planned,
            cell=replace(planned.cell, axes=(*planned.cell.axes, (THROUGH_AXIS, name))),
            commands=(command,),
            measure=measure,
        )
        for name, command in commands.items()
    )
    tuning = run.tuning and replace(run.tuning, verifies=run.id)
    proof = replace(
        run,
        id=secrets.token_hex(4),
        started_at=clock.timestamp(),
        tuning=tuning,
        duplicates={},
    )
    return PreparedRun(
        run=proof,
        file=jsonl.file_of(proof, documents.proofs_folder(records)),
        # Without an explicit baseline, the first cell is the baseline.
        tasks=(Task(scenario=task.scenario.model_copy(update={"baseline": None}), planned=cells),),
    )


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
