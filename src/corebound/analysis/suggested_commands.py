"""The commands that reproduce what a page shows."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable, Sequence

from msgspec import Struct

from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.triage import CommitEntry
from corebound.records.history import HistoryPoint, Series
from corebound.records.launch_record import ImportedProfile, Launch
from corebound.records.run_record import Commit, Run, ScenarioSource
from corebound.scenario.cell import PROJECT, Cell
from corebound.scenario.compared_axis import compared_axis, key_without_axis
from corebound.scenario.loader import load_document
from corebound.scenario.matrix import Key, expand

# Used if another tool measured the values and its file does not include the command.
NO_COMMAND = "The import contains no command."


class CommandLine(Struct, frozen=True):
    """A shell command.

    Attributes:
        line: The command for records in the default folder; for other tools possibly several lines.
        reads_records: Whether the command accepts `--records` in addition to its arguments.
    """

    line: str
    reads_records: bool = True

    @classmethod
    def of(cls, *words: str, reads_records: bool = True) -> CommandLine:
        """The command of these words, quoted where a shell needs it."""
        return cls(shlex.join(words), reads_records)

    def at(self, records: str) -> str:
        """The command for records in this folder; an empty `records` means the default folder."""
        if not records or not self.reads_records:
            return self.line
        return f"{self.line} --records {shlex.quote(records)}"


# The commands to run first, in order, as an empty report shows them.
FIRST = (
    CommandLine("corebound run scenarios --profile quick --budget 15m"),
    CommandLine("corebound report"),
)
RESUME = CommandLine("corebound run --resume")
CALIBRATE = CommandLine("corebound calibrate FILE")
TOPOLOGY = CommandLine("corebound topology", reads_records=False)
# `corebound run` accepts no more.
MOST_LAUNCHES = 1_000
DOCTOR = CommandLine("corebound doctor", reads_records=False)


def reproduce_command(result: ScenarioResult, cells: Sequence[Cell]) -> CommandLine:
    """The command that measures these cells again, with the run's seed and profile.

    Args:
        cells: The cells to measure; empty means all.
    """
    return _run(result.run, result.source, cells)


def plan_command(result: ScenarioResult, cell: Cell) -> CommandLine:
    """The command that shows where a cell is placed and how it is started, without launching it."""
    axis = compared_axis(result.source.document)
    only = _only([cell], axis)
    return CommandLine.of("corebound", "plan", result.source.path, *only, *_profile(result.run))


def import_command(profile: ImportedProfile) -> CommandLine:
    """The command that imports a profile again, to be run in the folder it was exported to.

    A profile may consist of several files in subfolders. The command then names the current folder,
    which the shell fills in.
    """
    file = shlex.quote(profile.files[0]) if len(profile.files) == 1 else '"$PWD"'
    return CommandLine(f"corebound import profile {file} --name {shlex.quote(profile.name)}")


def original_command(run: Run) -> CommandLine:
    """The command that started a run."""
    return CommandLine.of(*run.argv, reads_records="--records" not in run.argv)


def cell_command(result: ScenarioResult, cell: CellResult) -> CommandLine:
    """The command that measures a cell again, together with its baseline if it has one."""
    return reproduce_command(result, (cell.baseline, cell.cell) if cell.baseline else (cell.cell,))


def deciding_command(result: ScenarioResult, cell: CellResult) -> CommandLine | None:
    """The command that launches a cell and its baseline as often as would decide their comparison.

    None if it is decided, or if the number of launches is unknown or cannot be set.
    """
    needed = cell.comparison.launches_needed if cell.comparison else None
    if needed is None or needed > MOST_LAUNCHES or compared_axis(result.source.document):
        return None
    return CommandLine(f"{cell_command(result, cell).line} --launches {needed}")


def launch_command(run: Run, launch: Launch) -> CommandLine:
    """The command that repeats one launch of a cell.

    For a launch that counted, the command also compares the new result with the recorded one. For a
    launch without a result, the command launches the cell again.
    """
    if launch.kind == "measure" and launch.status == "ok":
        return CommandLine.of("corebound", "reproduce", run.id, "--cell", launch.cell.id)
    return cells_command(run, (launch.cell,))


def scenario_command(run: Run, source: ScenarioSource, cells: Sequence[Cell]) -> CommandLine:
    """The command that repeats the part of a run that measured one scenario.

    Args:
        cells: The cells of the scenario that were launched, each once.
    """
    return cells_command(run, cells) if cells and run.only else _run(run, source, ())


def cells_command(run: Run, cells: Sequence[Cell]) -> CommandLine:
    """The command that launches only some cells of a run again.

    Args:
        cells: At least one, all of one scenario. If the run does not have their scenario, the
            result is the command of the whole run.
    """
    source = run.source_of(cells[0].scenario)
    is_compared = source is not None and compared_axis(source.document) is not None
    # `corebound run` does not build commits.
    if source is None or (not is_compared and any(cell.commit is not None for cell in cells)):
        return original_command(run)
    return _run(run, source, cells)


def series_command(all_series: Sequence[Series]) -> CommandLine | None:
    """The command that measures the cells of one scenario again; None if no command is known.

    If another tool measured them, the result has one line per series with that tool's command.

    Args:
        all_series: At least one; all of one scenario and host.
    """
    if all_series[0].project is not None:
        return _of_other_tools(series.reproduce for series in all_series if series.reproduce)
    arguments = list(all_series[0].reproduce)
    for series in all_series[1:]:
        if series.cell not in arguments:
            arguments += ["--only", series.cell]
    return CommandLine.of(*arguments) if arguments else None


def _of_other_tools(commands: Iterable[Sequence[str]]) -> CommandLine | None:
    """One line for each different command; None without any."""
    lines = dict.fromkeys(map(shlex.join, commands))
    return CommandLine("\n".join(lines), reads_records=False) if lines else None


def between_command(
    all_series: Sequence[Series], good: HistoryPoint, bad: HistoryPoint
) -> CommandLine | None:
    """The command that compares two points of some cells of one scenario again.

    If asv measured both points and their commits are known, asv measures the two commits
    interleaved, which removes machine drift. Otherwise the command measures the cells again; None
    if no command is known.

    Args:
        all_series: At least one; all of one scenario and host.
        good: The point before the change.
        bad: The point after the change.
    """
    asv_commands = [
        asv_continuous_arguments(series, good.commit, bad.commit) for series in all_series
    ]
    return _of_other_tools(asv_commands) if all(asv_commands) else series_command(all_series)


def asv_continuous_arguments(
    series: Series, good: Commit | None, bad: Commit | None
) -> tuple[str, ...]:
    """The asv command that compares two commits of a series; empty unless asv measured two commits.

    >>> from support.build import a_point, a_series
    >>> asv = a_series([], reproduce=("asv", "run", "--bench", "a"))
    >>> asv_continuous_arguments(asv, a_point(day=1).commit, a_point(day=17).commit)
    ('asv', 'continuous', '--bench', 'a', '0000000000', '0000000000')
    """
    if good is None or bad is None or good.sha == bad.sha or series.reproduce[:2] != ("asv", "run"):
        return ()
    if _is_of_existing(series):
        return ()
    return ("asv", "continuous", *series.reproduce[2:], good.sha[:10], bad.sha[:10])


# A command for more benchmarks would be too long to read.
_MOST_COMPARED = 4


def triage_commands(entry: CommitEntry, built: Container[str]) -> dict[str, CommandLine]:
    """What one can do about the changes of a commit, by name, as far as it is possible.

    `Compare` its commits before and after, `Bisect` for the one in between that changed the most
    affected series, and `Acknowledge` the regressions.

    Our own scenarios are compared by building both commits, where they measure builds of the
    project under test; otherwise the two recorded runs are compared. Imported commits are compared
    by their recorded values.

    Args:
        built: The ids of our own series that measure builds of the commits under test.
    """
    is_pending = entry.is_regression and entry.status in {"new", "open"}
    metric = _metric(entry.leading.benchmarks[0].largest.series)
    words = ("corebound", "regressions", *metric, "--accept", entry.id, "--because", "REASON")
    every = {
        "Compare": _compare_commits(entry, built),
        "Bisect": _bisect(entry, built),
        "Acknowledge": CommandLine.of(*words) if is_pending else None,
    }
    return {name: command for name, command in every.items() if command is not None}


def _ends_of(entry: CommitEntry) -> tuple[str, str] | None:
    """The commits before and after; None if they are unknown or equal."""
    good, bad = entry.last_good.commit, entry.first_bad.commit
    if good is None or bad is None or not entry.is_of_commits:
        return None
    return good.sha[:10], bad.sha[:10]


def _compare_commits(entry: CommitEntry, built: Container[str]) -> CommandLine | None:
    commits = _ends_of(entry)
    all_series = [each.largest.series for each in entry.leading.counted[:_MOST_COMPARED]]
    buildable = [series for series in all_series if series.id in built]
    if commits is not None and buildable:
        files = dict.fromkeys(_scenario_file(series) for series in buildable)
        arguments = ["corebound", "compare-commits", *commits, *files]
        arguments += (*_option(buildable[0], "--profile"), *_option(buildable[0], "--config"))
        arguments += _metric(buildable[0])
        cells = {each.change.series.cell for each in entry.leading.changes}
        if len(files) == 1 and len(cells) <= _MOST_COMPARED and _has_cells(buildable[0]):
            arguments += _options("--only", sorted(cells))
        return CommandLine.of(*arguments)
    if entry.project is not None:
        return CommandLine.of("corebound", "compare", *commits) if commits else None
    # Both runs are of one host in the largest change, which an entry's range need not be.
    largest = entry.leading.benchmarks[0].largest
    runs = (largest.last_good.run, largest.first_bad.run)
    if runs[0] is None or runs[1] is None:
        return None
    return CommandLine.of("corebound", "compare", runs[0], runs[1], *_metric(largest.series))


def _bisect(entry: CommitEntry, built: Container[str]) -> CommandLine | None:
    commits = _ends_of(entry)
    largest = entry.leading.benchmarks[0].largest
    series = largest.series
    if commits is None:
        return None
    if series.id in built:
        arguments = ["corebound", "bisect", *commits, "--scenario", _scenario_file(series)]
        arguments += ("--cell", series.cell) if _has_cells(series) else ()
        return CommandLine.of(*arguments, *_option(series, "--config"), *_metric(series))
    if series.reproduce[:3] != ("asv", "run", "--bench") or _is_of_existing(series):
        return None
    invert = () if largest.is_up else ("--invert",)
    words = ("asv", "find", *invert, "..".join(commits), series.reproduce[3])
    return CommandLine.of(*words, reads_records=False)


def _scenario_file(series: Series) -> str:
    """The file in the command of one of our own series: `corebound run FILE …`."""
    return series.reproduce[2]


def _metric(series: Series) -> tuple[str, ...]:
    """The option that judges what a series is of."""
    return ("--metric", "memory") if series.metric else ()


def _option(series: Series, name: str) -> tuple[str, ...]:
    """An option with its value in the command of one of our own series; empty without it."""
    words = series.reproduce
    at = words.index(name) if name in words else len(words)
    return words[at : at + 2]


def _has_cells(series: Series) -> bool:
    """Whether the scenario of one of our own series has several cells."""
    return "--only" in series.reproduce


def point_command(series: Series, point: HistoryPoint) -> CommandLine | None:
    """The command that measures a point again and compares the result with the recorded one.

    If the point has no value, the command measures the cell. If asv measured the point, asv
    measures its commit again. In an environment that asv did not create, asv instead measures what
    is installed there and stores the result under that commit. None if another tool measured it.
    """
    if series.reproduce[:2] == ("asv", "run") and point.commit is not None:
        arguments = [*series.reproduce, f"{point.commit.sha[:10]}^!"]
        if _is_of_existing(series):
            named = "--python=same", "--set-commit-hash", point.commit.sha[:10]
            arguments = ["asv", "run", *named, *series.reproduce[2:]]
        return CommandLine.of(*arguments, reads_records=False)
    # An imported point is not in one of our runs, whatever run id its file gives.
    is_ratio = series.is_anchored
    if is_ratio or series.project is not None or point.run is None or point.value is None:
        return series_command((series,))
    cell = f"{series.scenario}[{series.cell}]"
    return CommandLine.of("corebound", "reproduce", point.run, "--cell", cell)


def latest_command(series: Series) -> CommandLine | None:
    """The command that measures the last value of a series again; None if no command is known.

    asv gets the commit of that value, because its default is the tip of the branch.
    """
    if series.project is None:
        return series_command((series,))
    last = next((point for point in reversed(series.points) if point.value is not None), None)
    return series_command((series,)) if last is None else point_command(series, last)


def _is_of_existing(series: Series) -> bool:
    """Whether asv did not create the environment: asv then cannot install a commit there."""
    return series.cell.rpartition("environment=")[2].startswith("existing-")


def compare_again_command(before: Run, after: Run, cell: Cell) -> CommandLine:
    """The command that repeats the comparison of two runs of a cell.

    If each run built a different clean commit for the cell, the command measures both commits
    interleaved. Only that removes the host drift between the two runs. Otherwise it measures the
    cell as the later run did.

    Args:
        after: The later run, which has the cell.
    """
    source = after.source_of(cell.scenario)
    if source is None:
        return original_command(after)
    # The project under test may be in another repository than the scenarios.
    old_commit, new_commit = (run.commit_of(cell.environment) for run in (before, after))
    if (
        cell.environment != PROJECT
        or cell.commit is not None
        or old_commit is None
        or new_commit is None
        or old_commit.dirty
        or new_commit.dirty
        or old_commit.sha == new_commit.sha
    ):
        return _run(after, source, (cell,))
    commits = old_commit.sha[:10], new_commit.sha[:10]
    arguments = ("corebound", "compare-commits", *commits, source.path, "--only", cell.key)
    return CommandLine.of(*arguments, *_profile(after), *after.config_option)


def _run(run: Run, source: ScenarioSource, cells: Sequence[Cell]) -> CommandLine:
    axis = compared_axis(source.document)
    if axis is not None:
        return _compare_sides(run, source, axis, cells)
    options = ("--seed", str(run.seed), *_profile(run), *run.config_option)
    return CommandLine.of("corebound", "run", source.path, *_only(cells, None), *options)


def _only(cells: Iterable[Cell], axis: Key | None) -> list[str]:
    """The options that select cells in a scenario's file, which lacks the compared axis."""
    keys = [cell.key if axis is None else key_without_axis(cell, axis) for cell in cells]
    # A cell without other axes is the only one.
    return _options("--only", [key for key in dict.fromkeys(keys) if not axis or key != "default"])


def _options(name: str, values: Iterable[str]) -> list[str]:
    """An option for each value."""
    return [word for value in values for word in (name, value)]


def _compare_sides(
    run: Run, source: ScenarioSource, axis: Key, cells: Sequence[Cell]
) -> CommandLine:
    """The command that compares two sides of some cells again: `corebound run` has no sides.

    If no pair of sides can be named, it is the command of the whole run.
    """
    scenario = load_document(source.document, source.path)
    every = expand(scenario, source.path, run.profile)
    names = tuple(dict.fromkeys(dict(cell.axes)[axis[-1]] for cell in every))
    base, *others = names
    heads = {dict(cell.axes).get(axis[-1]) for cell in cells} - {base} or set(others)
    built = (run.lock_of(cell.environment) for cell in every)
    if len(heads) != 1 or any(lock and lock.commit and lock.commit.tree for lock in built):
        return original_command(run)
    prefix = "" if axis == ("commit",) else f"{'.'.join(axis)}="
    arguments = ["corebound", "compare-commits", *(f"{prefix}{side}" for side in (base, *heads))]
    arguments += [source.path, *_only(cells, axis)]
    if not cells:
        arguments += _options("--only", run.only)
    return CommandLine.of(*arguments, *_profile(run), *run.config_option)


def _profile(run: Run) -> tuple[str, ...]:
    """The option for the profile that a run was measured with; empty without one."""
    return () if run.profile is None else ("--profile", run.profile)
