"""The commands that measure again what a page shows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from msgspec import Struct

from corebound.analysis.scenario_result import CellStudy, ScenarioResult
from corebound.records.history import HistoryPoint, Series
from corebound.records.launch_record import ImportedProfile, Launch
from corebound.records.run_record import Commit, Run, ScenarioSource
from corebound.scenario.cell import Cell

# Where another tool measured, and its file does not say how.
NO_COMMAND = "What was imported does not tell which command measured it."


class CommandLine(Struct, frozen=True):
    """A command as it is typed in a shell.

    Attributes:
        line: Where the records are in the usual folder; of other tools perhaps several lines.
        reads_records: Whether it takes `--records` beyond what it has.
    """

    line: str
    reads_records: bool = True

    def at(self, records: str) -> str:
        """As it is typed where the records are in this folder; empty for the usual one."""
        if not records or not self.reads_records:
            return self.line
        return f"{self.line} --records {shlex.quote(records)}"


# What a first page tells to run, in order.
FIRST = (CommandLine("corebound run scenarios --profile quick"), CommandLine("corebound report"))
CALIBRATE = CommandLine("corebound calibrate FILE")
TOPOLOGY = CommandLine("corebound topology", reads_records=False)
DOCTOR = CommandLine("corebound doctor", reads_records=False)


def reproduce_command(study: ScenarioResult, cells: Sequence[Cell]) -> CommandLine:
    """The command that measures these cells again, with the run's seed and profile.

    Args:
        study: The scenario.
        cells: Which of its cells; none means all.
    """
    return _run(study.run, study.source, cells)


def plan_command(study: ScenarioResult, cell: Cell) -> CommandLine:
    """The command that shows where a cell is placed and how it is started, launching nothing."""
    words = ["corebound", "plan", study.source.path, "--only", cell.key]
    if study.run.profile is not None:
        words += ["--profile", study.run.profile]
    return CommandLine(shlex.join(words), reads_records=False)


def import_command(profile: ImportedProfile) -> CommandLine:
    """The command that reads a profile made elsewhere again, in the folder it was exported to.

    Several files may lie in folders of that one, and only together tell it all; what they are
    is told by the folder's name, which the shell puts in.
    """
    file = shlex.quote(profile.files[0]) if len(profile.files) == 1 else '"$PWD"'
    return CommandLine(f"corebound import profile {file} --name {shlex.quote(profile.name)}")


def asked_command(run: Run) -> CommandLine:
    """The command that a run was asked for by."""
    return CommandLine(shlex.join(run.argv), reads_records="--records" not in run.argv)


def row_command(study: ScenarioResult, cell: CellStudy) -> CommandLine:
    """The command that measures a cell again, and beside it what its ratio is to."""
    return reproduce_command(study, (cell.baseline, cell.cell) if cell.baseline else (cell.cell,))


def launch_command(run: Run, launch: Launch) -> CommandLine:
    """The command that launches a cell again as this launch of it was.

    One that counted is held against what is recorded. One that gave no figure is launched
    as then, but where it was of a commit that had to be built: then the run is, as it was asked.
    """
    if launch.kind == "measure" and launch.status == "ok":
        return CommandLine(shlex.join(("corebound", "reproduce", run.id, "--cell", launch.cell.id)))
    return cells_command(run, (launch.cell,))


def scenario_command(run: Run, source: ScenarioSource, cells: Sequence[Cell]) -> CommandLine:
    """The command that measures again what a run did of a scenario.

    Args:
        run: The run.
        source: One of its scenarios.
        cells: Those of the scenario that were launched, each once.
    """
    return cells_command(run, cells) if cells and run.only else _run(run, source, ())


def cells_command(run: Run, cells: Sequence[Cell]) -> CommandLine:
    """The command that launches some cells of a run again, and no others.

    Args:
        run: The run.
        cells: At least one, all of one scenario. Where commits were built for them, or the run
            does not have their scenario, the command of the whole run stands for it.
    """
    source = run.source_of(cells[0].scenario)
    # `run` builds no commits.
    if source is None or any(cell.commit is not None for cell in cells):
        return asked_command(run)
    return _run(run, source, cells)


def series_command(series: Sequence[Series]) -> CommandLine | None:
    """The command that measures the cells of one scenario again; None where none is known.

    Where another tool measured them, it is that tool's, for each of them on a line.

    Args:
        series: At least one; all of one scenario and host.
    """
    if series[0].project is not None:
        lines = dict.fromkeys(shlex.join(one.reproduce) for one in series if one.reproduce)
        return CommandLine("\n".join(lines), reads_records=False) if lines else None
    words = list(series[0].reproduce)
    for one in series[1:]:
        if one.cell not in words:
            words += ["--only", one.cell]
    return CommandLine(shlex.join(words)) if words else None


def between_command(
    series: Sequence[Series], good: HistoryPoint, bad: HistoryPoint
) -> CommandLine | None:
    """The command that asks again what changed in some cells of one scenario between two points.

    Where asv measured and both commits are known it measures them in turns, which leaves out
    how the machine drifted; else what measures the cells, or None where none is known.

    Args:
        series: At least one; all of one scenario and host.
        good: The point before.
        bad: The point after.
    """
    several = [continuous_words(one, good.commit, bad.commit) for one in series]
    if not all(several):
        return series_command(series)
    lines = dict.fromkeys(map(shlex.join, several))
    return CommandLine("\n".join(lines), reads_records=False)


def continuous_words(series: Series, good: Commit | None, bad: Commit | None) -> tuple[str, ...]:
    """What asv measures two commits of a series by; empty where they are not two, or asv did not.

    >>> from support.build import a_point, a_series
    >>> asv = a_series([], reproduce=("asv", "run", "--bench", "a"))
    >>> continuous_words(asv, a_point(day=1).commit, a_point(day=17).commit)
    ('asv', 'continuous', '--bench', 'a', '0000000000', '0000000000')
    """
    if good is None or bad is None or good.sha == bad.sha or series.reproduce[:2] != ("asv", "run"):
        return ()
    if _is_of_existing(series):
        return ()
    return ("asv", "continuous", *series.reproduce[2:], good.sha[:10], bad.sha[:10])


def point_command(series: Series, point: HistoryPoint) -> CommandLine | None:
    """The command that measures a point again and holds it against what is recorded.

    Where it has no figure the cell is measured; where asv measured it, asv does so at its commit,
    or, of an environment that it did not make, of what is installed there under that commit's name.
    None where another tool measured it.
    """
    if series.reproduce[:2] == ("asv", "run") and point.commit is not None:
        words = [*series.reproduce, f"{point.commit.sha[:10]}^!"]
        if _is_of_existing(series):
            named = "--python=same", "--set-commit-hash", point.commit.sha[:10]
            words = ["asv", "run", *named, *series.reproduce[2:]]
        return CommandLine(shlex.join(words), reads_records=False)
    # What was imported is in no run of ours, whatever its file calls its own.
    if series.project is not None or point.run is None or point.figure is None:
        return series_command((series,))
    cell = f"{series.scenario}[{series.cell}]"
    return CommandLine(shlex.join(("corebound", "reproduce", point.run, "--cell", cell)))


def latest_command(series: Series) -> CommandLine | None:
    """The command that measures the last figure of a series; None where none is known.

    What asv measured it measures at that figure's commit, for by itself it takes the branch's tip.
    """
    last = next((one for one in reversed(series.points) if one.figure is not None), None)
    if series.project is None or last is None:
        return series_command((series,))
    return point_command(series, last)


def _is_of_existing(series: Series) -> bool:
    """Whether asv did not make the environment; it takes no commits there, and installs none."""
    return series.cell.rpartition("environment=")[2].startswith("existing-")


def again_command(before: Run, after: Run, cell: Cell) -> CommandLine:
    """The command that asks again what two runs of a cell were compared for.

    Two commits in turns, where each run was of a clean one of its own: that alone leaves
    out how the host drifted between two runs. Else the cell as the later run measured it.

    Args:
        before: The earlier run.
        after: The later one, which has the cell.
        cell: The cell.
    """
    source = after.source_of(cell.scenario)
    if source is None:
        return asked_command(after)
    one, two = before.commit, after.commit
    if one is None or two is None or one.dirty or two.dirty or one.sha == two.sha:
        return _run(after, source, (cell,))
    words = ["corebound", "compare-commits", one.sha[:10], two.sha[:10], source.path]
    words += ["--only", cell.key]
    if after.profile is not None:
        words += ["--profile", after.profile]
    return CommandLine(shlex.join(words))


def _run(run: Run, source: ScenarioSource, cells: Sequence[Cell]) -> CommandLine:
    words = ["corebound", "run", source.path]
    for cell in cells:
        words += ["--only", cell.key]
    return CommandLine(shlex.join([*words, *_way(run)]))


def _way(run: Run) -> list[str]:
    """How a run measured."""
    words = ["--seed", str(run.seed)]
    return words if run.profile is None else [*words, "--profile", run.profile]
