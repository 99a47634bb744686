"""`corebound reproduce` without a terminal: measure a recorded result again, and compare."""

import io
import tarfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from corebound import git
from corebound.analysis.json_documents import attributes, between_runs_document, comparison_document
from corebound.analysis.run_comparison import earlier_runs
from corebound.asv_bridge.project import open_project
from corebound.asv_bridge.snapshot import objects_of
from corebound.errors import HostError, InputError, LaunchError
from corebound.launch import scratch
from corebound.records import commits, jsonl
from corebound.records.jsonl import RECORDS, Stored
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.scenario.cell import PROJECT, Cell, OfOneCell, cell_identity
from corebound.scenario.loader import load_document
from corebound.scenario.models import Scenario, measure_for
from corebound.stats.between_runs import BetweenRuns, between_runs
from corebound.stats.comparison import Comparison, Verdict, compare
from corebound.stats.history.series import environment_keys_of_run
from corebound.stats.intervals import Ends
from corebound.stats.launch_summary import summarise
from corebound.workflow.calibrate import noise_notes
from corebound.workflow.changed_conditions import environment_differences, host_differences
from corebound.workflow.execute import NO_LIMIT, Reporter, execute_run, hold_host
from corebound.workflow.host_checks import preflight
from corebound.workflow.options import Argument, Config, Option, Records, Unlocked, Wait
from corebound.workflow.prepare import PreparedRun, RunRequest, plan_run, with_launches
from corebound.workflow.projects import CONFIG, Notify
from corebound.workflow.resolve_refs import matching_runs
from corebound.workflow.run_index import REPRODUCTIONS, earlier_results_of_pair
from corebound.workflow.scenarios import LoadedScenario

# An estimate of the spread needs several launches, even if fewer were recorded.
_MIN_LAUNCHES = 3


class ReproduceResult(OfOneCell, frozen=True, kw_only=True):
    """Whether a recorded result holds; pairs have the recorded value, then the new one.

    Attributes:
        measured: The cell.
        before, after: The runs.
        records: Their files.
        medians_ns: Time of an iteration.
        launches: The number of launches of each.
        comparison: The new result relative to the recorded one.
        between: The cell's run-to-run variation.
        margin: The largest share that counts as equal.
        differences: What differs in the host and the environment; empty unless `anyway`.
        noise: The noise floor of the cell's scenario, if it was calibrated, in a sentence.
    """

    before: Run
    after: Run
    records: tuple[Path, Path]
    medians_ns: tuple[float, float]
    launches: tuple[int, int]
    comparison: Comparison
    between: BetweenRuns
    margin: float
    differences: tuple[str, ...]
    noise: tuple[str, ...]

    @property
    def holds(self) -> bool | None:
        """Whether the result is reproduced; None if the launches are inconclusive."""
        verdict, ratio = self.comparison.verdict, self.comparison.speedup_ratio
        if verdict == "equivalent":
            return True
        beyond = not 1 / (1 + self.margin) <= ratio <= 1 + self.margin
        return False if verdict in {"faster", "slower"} and beyond else None

    @property
    def verdict(self) -> Verdict:
        """The new result relative to the recorded one."""
        return self.comparison.verdict

    @property
    def recorded_ns(self) -> float:
        """The recorded time of an iteration, in nanoseconds."""
        return self.medians_ns[0]

    @property
    def now_ns(self) -> float:
        """The time now."""
        return self.medians_ns[1]

    @property
    def slowdown_ratio(self) -> float:
        """The time now over the recorded one."""
        return self.comparison.slowdown_ratio

    @property
    def slowdown_interval(self) -> Ends | None:
        """Its 95 % confidence interval, (low, high); None with too few launches."""
        return self.comparison.slowdown_interval

    @property
    def document(self) -> dict[str, Any]:
        """The result as plain data, as `corebound reproduce --json` prints it."""
        return {
            **cell_identity(self.scenario, self.cell),
            "holds": self.holds,
            **comparison_document(self.comparison),
            "margin": self.margin,
            "then_ns": self.recorded_ns,
            **attributes(self, "now_ns", "launches"),
            "between_runs": between_runs_document(self.between),
            "seed": self.after.seed,
            "commit": to_builtins(self.before.commit),
            "differing": self.differences,
            **attributes(self, "noise", "records"),
        }


def find_run(record: str, records: Path) -> tuple[Stored, str | None]:
    """Find the run that `RECORD` or `RECORD:CELL` names, and the name of the cell in it.

    Args:
        record: A file of records, the start of a run's id, or a commit, of which the latest run
            counts.

    Raises:
        InputError: No run matches, or several do.
    """
    if Path(record).is_file():
        return jsonl.read(Path(record)), None
    for index in (index for index, letter in enumerate(record) if letter == ":"):
        if Path(record[:index]).is_file():
            return jsonl.read(Path(record[:index])), record[index + 1 :]
    name, _, cell = record.partition(":")
    return jsonl.read(matching_runs(name, jsonl.runs(records, []), records)[-1].file), cell or None


def select_cell(stored: Stored, name: str | None) -> Cell:
    """The cell with this key or id; without a name, the only one that has results.

    Raises:
        InputError: No cell matches, or several do.
    """
    with_results = {
        launch.cell.id: launch.cell
        for launch in stored.launches
        if launch.kind == "measure" and launch.status == "ok"
    }
    matches = [cell for cell in with_results.values() if name in {None, cell.key, cell.id}]
    if len(matches) == 1:
        return matches[0]
    ids = sorted(cell.id for cell in (matches or with_results.values()))
    listed = ", ".join(ids[:8]) + (", …" if len(ids) > 8 else "")
    raise InputError(
        what=f"{len(matches)} cells with results match. Cells: {listed or 'none'}.",
        where=str(stored.file),
        fix="Select one with --cell.",
    )


class ReproduceRequest(Struct, frozen=True, kw_only=True):
    """The result to measure again; the new run goes to a folder of reproductions."""

    record: Annotated[
        str, Argument("File of a run, or the start of its id.", metavar="RECORD[:CELL]")
    ]
    cell: Annotated[str | None, Option("Key or id of the cell, as reports show it.")] = None
    launches: Annotated[
        int | None, Option("Number of launches; default: as recorded.", min=2, max=1000)
    ] = None
    anyway: Annotated[bool, Option("Measure even if the host or environment differs.")] = False
    unlocked: Unlocked = False
    wait_s: Wait = 0.0
    config: Config = CONFIG
    records: Records = RECORDS


def reproduce_result(request: ReproduceRequest, reporter: Reporter) -> ReproduceResult:
    """Measure a recorded cell again under the recorded conditions, and compare.

    Raises:
        InputError: No run or no cell matches, or several do.
        HostError: The host or the environment differs, or the commit is not available.
        LaunchError: No launch succeeded.
    """
    records = request.records
    stored, named_cell = find_run(request.record, records)
    cell = select_cell(stored, request.cell or named_cell)
    before = stored.run
    source = before.source_of(cell.scenario)
    if source is None:
        raise InputError(
            what=f"the run has launches of the scenario {cell.scenario}, but not the scenario.",
            where=str(stored.file),
            fix="Copy the file again from its origin, or name another run.",
        )
    scenario = load_document(source.document, source.path)
    recorded = [
        launch
        for launch in stored.launches
        if launch.kind == "measure" and launch.cell.id == cell.id
    ]
    measure = measure_for(scenario, before.profile)
    old = summarise(cell, recorded, measure.warmup)
    with ExitStack() as stack:
        stack.enter_context(
            hold_host(reporter.notify, unlocked=request.unlocked, wait_s=request.wait_s)
        )
        has_tree = before.commit is not None and before.commit.tree is not None
        snapshots = open_project(request.config, reporter.notify).store if has_tree else None
        path = check_out(before, source.path, scenario, stack, snapshots)
        as_before = RunRequest(
            files=(path,), profile=before.profile, only=(cell.id,), config=request.config
        )
        prepared, differences = _prepare(
            stored, cell, scenario, as_before, reporter.notify, anyway=request.anyway
        )
        prepared = replace(
            prepared,
            file=jsonl.file_of(prepared.run, records / REPRODUCTIONS),
            tasks=with_launches(
                prepared.tasks, request.launches or max(_MIN_LAUNCHES, len(old.launches))
            ),
        )
        result = execute_run(preflight(prepared, reporter), NO_LIMIT, reporter)
    repeated = [launch for launch in result.launches if launch.kind == "measure"]
    new = summarise(cell, repeated, measure.warmup)
    between = _run_to_run_variation(records, cell, recorded, (before, result.run))
    comparison = compare(new, old, margin=measure.margin, between=between)
    if comparison is None or new.median_ns is None or old.median_ns is None:
        raise _no_result(cell, result.launches, result.file)
    return ReproduceResult(
        measured=cell,
        before=before,
        after=result.run,
        records=(stored.file, result.file),
        medians_ns=(old.median_ns, new.median_ns),
        launches=(len(old.launches), len(new.launches)),
        comparison=comparison,
        between=between,
        margin=measure.margin,
        differences=differences,
        noise=noise_notes(
            records, result.run, [source], launches=min(len(old.launches), len(new.launches))
        ),
    )


def _run_to_run_variation(
    records: Path, cell: Cell, launches: Sequence[Launch], pair: tuple[Run, Run]
) -> BetweenRuns:
    """Run-to-run variation of the cell, from other runs measured like the first."""
    past = earlier_results_of_pair(records, pair)
    environment_key = environment_keys_of_run(pair[0], launches)[cell.id]
    return between_runs(earlier_runs(past, cell, pair, environment_key))


def _prepare(
    stored: Stored,
    cell: Cell,
    scenario: Scenario,
    request: RunRequest,
    notify: Notify,
    *,
    anyway: bool,
) -> tuple[PreparedRun, tuple[str, ...]]:
    """The run that repeats the measurement, and the differences that `anyway` accepts."""
    before = stored.run
    differences = [*host_differences(before)]
    if not anyway:
        _refuse(differences, stored)
    loaded = LoadedScenario(
        path=request.files[0], scenario=scenario, cells=(_at_recorded_commit(cell, before),)
    )
    run, tasks = plan_run((loaded,), request, notify, seed=before.seed)
    differences += environment_differences(cell, before, run)
    if not anyway:
        _refuse(differences, stored)
    run = replace(run, commit=before.commit)
    return PreparedRun(run=run, file=stored.file, tasks=tasks), tuple(differences)


def _no_result(cell: Cell, launches: Sequence[Launch], file: Path) -> LaunchError:
    reasons = dict.fromkeys(launch.reason for launch in launches if launch.reason)
    return LaunchError(
        what=f"the new launches of {cell.id} have no result:"
        f" {'; '.join(reasons) or 'none succeeded'}",
        where=str(file),
        fix="See the launches in these records.",
    )


def _refuse(differences: list[str], stored: Stored) -> None:
    if differences:
        raise HostError(
            what=f"the conditions differ from the recorded ones: {'; '.join(differences)}.",
            where=str(stored.file),
            fix="Reproduce it under the recorded conditions, or pass --anyway to measure"
            " under the present ones.",
        )


def _at_recorded_commit(cell: Cell, before: Run) -> Cell:
    """Replace a cell's reference to the checked-out commit with the commit of that time."""
    lock = before.lock_of(cell.environment)
    if cell.environment != PROJECT or cell.commit or lock is None or lock.commit is None:
        return cell
    return replace(cell, commit=lock.commit.sha if lock.commit.tree is None else lock.commit.name)


def check_out(
    before: Run,
    path: str,
    scenario: Scenario,
    stack: ExitStack,
    snapshots: Path | None = None,
) -> Path:
    """Check out the scenario's file and the modules beside it, as of the run's commit.

    Args:
        path: The recorded path of the file.
        stack: Removes the checkout on exit.
        snapshots: The snapshot store, if the run measured a working tree with changes.

    Raises:
        HostError: The commit is not available here, or git is not installed.
    """
    is_own = not isinstance(scenario.workload, str) or ":" in scenario.workload
    now = commits.checked_out(Path.cwd())
    if before.commit is None or not is_own or Path(path).is_absolute():
        return Path(path)
    if now is not None and now.sha == before.commit.sha and not now.dirty:
        return Path(path)
    prefix = _git("rev-parse", "--show-prefix")
    archive = _git(
        "archive",
        "--format=tar",
        f"{before.commit.tree or before.commit.sha}:{(prefix or b'').decode().strip()}",
        objects="" if snapshots is None else objects_of(snapshots),
    )
    if archive is None and before.commit.tree is not None:
        raise HostError(
            what=f"the measured working tree, {before.commit.name}, is not available.",
            where=path,
            fix="Reproduce it on the host where its snapshot was taken.",
        )
    if archive is None:
        raise HostError(
            what=f"the measured commit, {before.commit.sha[:10]}, is not available.",
            where=path,
            fix="Fetch it: `git fetch --all`.",
        )
    folder = stack.enter_context(scratch.scratch_folder())
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    # Modules are searched up to the root of a repository.
    (folder / ".git").touch()
    return folder / path


def _git(*arguments: str, objects: str = "") -> bytes | None:
    """Return git's output, with `objects` as additional object folders; None if git fails."""
    environment = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": objects}
    result = git.run(Path(), *arguments, environment=environment)
    return result.stdout if result.succeeded else None
