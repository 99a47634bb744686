"""Write the files that set what a race recommends, and prove each by launches through it."""

import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from corebound import clock
from corebound.analysis.tuning_checks import (
    DIRECT,
    THROUGH_AXIS,
    ArtefactProof,
    launched_proof,
)
from corebound.errors import report_os_errors
from corebound.planning.artefacts import OF_FRAMEWORKS, Artefact, ArtefactKind, artefacts, fits
from corebound.planning.commands import WORKER
from corebound.planning.models import Command
from corebound.planning.plan import AnyWorkload, PlannedCell, own_program, shorten
from corebound.records import atomic_write, documents, jsonl
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.runner import Task
from corebound.scenario.runtimes import FRAMEWORKS
from corebound.workflow.artefact_checks import check_artefact
from corebound.workflow.execute import Budget, Reporter, execute_run
from corebound.workflow.prepare import PreparedRun, with_launches
from corebound.workflow.projects import Notify

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
    commands: dict[str, Command] = {DIRECT: planned.commands[0]}
    commands |= {str(kind): command for kind, command in through.items()}
    cells = tuple(
        replace(
            planned,
            cell=replace(planned.cell, axes=(*planned.cell.axes, (THROUGH_AXIS, name))),
            commands=(command,),
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
    # Without an explicit baseline, the first cell is the baseline.
    scenario = task.scenario.model_copy(update={"baseline": None})
    return PreparedRun(
        run=proof,
        file=jsonl.file_of(proof, documents.proofs_folder(records)),
        tasks=with_launches((Task(scenario=scenario, planned=cells),), _LAUNCHES),
    )
