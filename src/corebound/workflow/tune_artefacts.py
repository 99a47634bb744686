"""Write the files of `corebound tune --emit`, and launch through those that can run here."""

from __future__ import annotations

import re
import secrets
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import yaml
from msgspec.structs import replace

from corebound import clock
from corebound.analysis.tuning_proofs import DIRECT, THROUGH_AXIS, Proof, launched_proof
from corebound.errors import report_os_errors
from corebound.machine.topology import parse_cpu_list
from corebound.planning.artefacts import Artefact, ArtefactKind, artefacts
from corebound.planning.commands import WORKER
from corebound.planning.models import Command
from corebound.planning.plan import PlannedCell
from corebound.records import documents, jsonl
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.runner import Task
from corebound.scenario.cell import Cell
from corebound.workflow.execute import Reporter, execute_run
from corebound.workflow.prepare import PreparedRun

_LAUNCHES = 4
# Passes the variables of a file on.
_WITH_FILE = 'set -a; . "$0"; set +a; exec "$@"'
_THEN_WORK = (
    "\nimport runpy\nrunpy.run_module('corebound.worker', run_name='__main__', alter_sys=True)\n"
)
_CHECK_TIMEOUT_S = 30


def write_artefacts(planned: PlannedCell, kinds: Sequence[ArtefactKind], folder: Path) -> None:
    """Write the artefacts of a configuration into a folder.

    Raises:
        InputError: The folder cannot be written.
    """
    for artefact in _artefacts(planned, kinds):
        file = folder / _file_name(artefact)
        with report_os_errors(
            "the file cannot be written", where=file, fix="Choose another folder with --out."
        ):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(artefact.text)


def _file_name(artefact: Artefact) -> str:
    return "docker-run.sh" if artefact.kind == "docker" else artefact.file


def _artefacts(planned: PlannedCell, kinds: Sequence[ArtefactKind]) -> tuple[Artefact, ...]:
    if planned.placement is None:
        raise ValueError("a recommended configuration was launched")
    return artefacts(planned.cell, planned.placement, planned.commands, kinds)


def prove(
    run: Run,
    task: Task,
    cell: Cell,
    kinds: Sequence[ArtefactKind],
    *,
    records: Path,
    folder: Path,
    reporter: Reporter,
) -> tuple[Proof, ...]:
    """Launch through the artefacts of a configuration, and check the syntax of the others.

    Args:
        run: The run of the race.
        task: Its task.
        cell: The configuration.
        kinds: The artefacts to prove; they are already written.
        records: The folder of records.
        folder: The folder of the artefacts.
        reporter: Shows the progress.
    """
    planned = next(one for one in task.planned if one.cell.key == cell.key)
    written = _artefacts(planned, kinds)
    through = {
        artefact.kind: command
        for artefact in written
        if (command := _command_through(artefact, planned, folder)) is not None
    }
    launches: Sequence[Launch] = ()
    if through:
        with ExitStack() as stack:
            prepared = _proof_run(run, task, planned, through, records)
            launches = execute_run(prepared, None, reporter, stack).launches
    return tuple(
        launched_proof(
            artefact,
            launches,
            warmup=planned.measure.warmup,
            margin=planned.measure.margin,
        )
        if artefact.kind in through
        else _checked(artefact)
        for artefact in written
    )


def _command_through(artefact: Artefact, planned: PlannedCell, folder: Path) -> Command | None:
    """The command that starts a worker through an artefact; None if that is not possible here."""
    if len(planned.commands) > 1 or planned.traffic is not None:
        return None
    (command,) = planned.commands
    file = str((folder / _file_name(artefact)).resolve())
    python, *worker = command.argv[-1 - len(WORKER) :]
    if artefact.kind == "shell":
        return Command(argv=("sh", file, python, *worker), env=())
    if artefact.kind == "env":
        return Command(argv=("sh", "-c", _WITH_FILE, file, *command.argv), env=())
    binds_memory = planned.placement is not None and planned.placement.memory != "default"
    if artefact.kind == "python" and not binds_memory:
        return Command(argv=(python, "-c", artefact.text + _THEN_WORK), env=())
    return None


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


def _checked(artefact: Artefact) -> Proof:
    problem = "; ".join(_problems(artefact))
    if problem:
        return Proof(artefact=artefact, state="wrong", evidence=problem)
    return Proof(
        artefact=artefact, state="checked", evidence="Not launched here; its syntax was checked."
    )


def _problems(artefact: Artefact) -> Iterable[str]:
    """What the artefact's own program, or else a parser of its format, finds wrong with it."""
    match artefact.kind:
        case "systemd":
            yield from _systemd_problems(artefact.text)
        case "kubernetes":
            container = yaml.safe_load(artefact.text)["spec"]["containers"][0]
            if container["resources"]["requests"] != container["resources"]["limits"]:
                yield "the requests differ from the limits"
        case "docker":
            yield from _docker_problems(artefact.text)
        case "shell" | "env":
            shell = subprocess.run(
                ["sh", "-n"], input=artefact.text, capture_output=True, text=True, check=False
            )
            if shell.returncode:
                yield shell.stderr.strip()
        case "torchserve":
            # java.util.Properties accepts more, but nothing else is meant here.
            yield from (
                f"no setting: {line}"
                for line in artefact.text.splitlines()
                if not re.fullmatch(r"[a-z_]+=\S.*", line)
            )
        case "python" | "onnxruntime":
            compile(artefact.text, artefact.file, "exec")


def _docker_problems(text: str) -> Iterable[str]:
    for words in map(shlex.split, text.splitlines()):
        for option in ("--cpuset-cpus", "--cpuset-mems"):
            if option in words and not parse_cpu_list(words[words.index(option) + 1]):
                yield f"{option} is empty"


def _systemd_problems(text: str) -> Iterable[str]:
    """What `systemd-analyze verify` says; nothing where it is not installed."""
    program = shutil.which("systemd-analyze")
    if program is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder) / "checked.service"
        unit.write_text(f"{text}\n[Service]\nExecStart=/bin/true\n")
        said = subprocess.run(
            [program, "verify", str(unit)],
            capture_output=True,
            text=True,
            check=False,
            timeout=_CHECK_TIMEOUT_S,
        )
    yield from (
        line for line in said.stderr.splitlines() if "checked.service" in line and "Unknown" in line
    )
