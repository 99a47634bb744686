"""`corebound compare` without a terminal: two recorded runs, or two commits of a history."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from msgspec.structs import replace

from corebound.analysis.change_history import build_change_history
from corebound.analysis.commit_comparison import (
    CommitComparison,
    InterleavedComparison,
    compare_imported_commits,
)
from corebound.analysis.host_records import Record
from corebound.analysis.noise_floor import noise_floor_notes
from corebound.analysis.peak_memory import judged_by
from corebound.analysis.run_comparison import RunComparison, compare_runs
from corebound.errors import Fault, InputError
from corebound.records import documents, history_files, jsonl
from corebound.scenario.metrics import JudgedBy
from corebound.workflow.change_point_cache import cached_change_points
from corebound.workflow.compare_commits import recorded_comparison
from corebound.workflow.process_pool import forked_map
from corebound.workflow.projects import Notify
from corebound.workflow.resolve_refs import (
    resolve_commits,
    resolve_measured_commits,
    resolve_runs,
)
from corebound.workflow.run_index import drop_unreadable_scenarios, earlier_results_of_pair


def compare_recorded(
    before: str,
    after: str,
    records: Path,
    notify: Notify,
    status: Callable[[str], AbstractContextManager[object]] = nullcontext,
    *,
    project: str | None = None,
    metric: JudgedBy = "time",
) -> RunComparison | CommitComparison | InterleavedComparison:
    """Compare two runs, two commits that were measured interleaved, or two of an imported project.

    Args:
        before: A run (its id, the start of it, or its file) or a commit (its hash or tag).
        after: The run or commit to compare with the first.
        notify: Called with a warning for each thing that cannot be read.
        status: Shows a text while a long step runs.
        project: The imported project whose commits to compare; None compares runs first, then the
            commits of the only project that has both.
        metric: What to compare of runs; imported series have a unit of their own.

    Raises:
        InputError: A name matches nothing, or several runs or commits.
    """
    faults: list[Fault] = []
    runs = jsonl.runs(records, faults)
    if project is not None:
        # Only imported histories have projects, so no run can be meant.
        runs = []
    if (interleaved := resolve_measured_commits(before, after, runs)) is not None:
        stored, base, head = interleaved
        _warn(notify, *faults)
        notify(f"Measured interleaved in the run of {stored.run.started_at}, {stored.run.id}.")
        return recorded_comparison(jsonl.read(stored.file), base, head, metric)
    try:
        pair = resolve_runs(before, after, runs, records)
    except InputError:
        imported, damaged = history_files.read_all(records)
        _warn(notify, *faults, *damaged)
        commits = resolve_commits(before, after, imported, project=project)
        if commits is None:
            raise
        series = (each for each in imported if each.project == commits[0])
        # Thousands of series that were never analysed before take a minute.
        with (
            status("Analysing the history"),
            cached_change_points(records, all_series=False) as cache,
        ):
            history = build_change_history(series, cache=cache, mapper=forked_map)
            return compare_imported_commits(*commits, history)
    first, second = (judged_by(metric, *_read(stored.file, faults)) for stored in pair)
    calibrations, damaged = documents.CALIBRATIONS.read(records)
    _warn(notify, *faults, *damaged)
    past = earlier_results_of_pair(records, (pair[0].run, pair[1].run), metric)
    comparison = compare_runs(first, second, past)
    noise = noise_floor_notes(calibrations, comparison.after, launches=comparison.launches)
    return replace(comparison, noise=noise)


def _read(file: Path, faults: list[Fault]) -> Record:
    stored = jsonl.read(file)
    run, unreadable = drop_unreadable_scenarios(stored)
    faults += unreadable
    return run, stored.launches


def _warn(notify: Notify, *faults: Fault) -> None:
    for fault in faults:
        notify(f"warning: {fault}")
