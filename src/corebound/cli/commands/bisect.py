"""`corebound bisect`: find the commit that made a cell slower, by a search that tolerates noise."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from corebound.asv_bridge.project import open_project
from corebound.cli import noise_notes, options
from corebound.cli.commands import doctor, run
from corebound.cli.options import (
    Budget,
    Config,
    Json,
    Only,
    Records,
    Unlocked,
    Wait,
    take_host,
    typed,
)
from corebound.cli.output import bisect as output_bisect
from corebound.cli.output.bisect import BisectResult
from corebound.cli.output.terminal import Console
from corebound.errors import NO_ANSWER, InputError, LaunchError
from corebound.machine.doctor.result import HostCheck
from corebound.records.jsonl import RECORDS
from corebound.records.launch_record import Launch
from corebound.records.run_record import Commit
from corebound.stats.bisection import Answer, Ask, BisectionOutcome, search
from corebound.stats.comparison import log_ratios
from corebound.stats.launch_summary import CellSummary, summarise
from corebound.text import one_line
from corebound.workflow import compare_commits, projects
from corebound.workflow.prepare import PreparedRun, RunRequest
from corebound.workflow.projects import Say
from corebound.workflow.scenarios import Loaded


def bisect(
    good: Annotated[str, typer.Argument(help="A commit from before the change.")],
    bad: Annotated[str, typer.Argument(help="One from after it.")],
    *,
    scenario: Annotated[Path, typer.Option("--scenario", help="The scenario file.")],
    cell: Annotated[
        str | None, typer.Option("--cell", help="The cell's key, as reports show it.")
    ] = None,
    only: Only = None,
    launches: Annotated[
        int | None,
        typer.Option(
            "--launches", min=3, max=1000, help="Of each commit at most; else the scenario's max."
        ),
    ] = None,
    budget: Budget = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure anew what records hold of this search.")
    ] = False,
    unlocked: Unlocked = False,
    wait: Wait = None,
    config: Config = projects.CONFIG,
    records: Records = RECORDS,
    as_json: Json = False,
) -> None:
    """Find the commit that made a cell slower, or faster.

    It lies between GOOD and BAD.
    """
    budget_s = None if budget is None else run.seconds(budget)
    wait_s = 0.0 if wait is None else run.seconds(wait, option="--wait")
    console = Console(stderr=True)
    say = options.teller(console)
    wanted = RunRequest(
        files=(scenario,),
        profile=None,
        only=(*(only or ()), *((cell,) if cell else ())),
        seed=None,
        config=config,
        records=records,
    )
    project = open_project(config, say)
    ends = project.commit(good), project.commit(bad)
    between = project.between(*ends)
    if not between:
        raise InputError(
            what=f"`{bad}` does not come from `{good}` along first parents.",
            where="corebound bisect",
            fix="Name a GOOD that `git log --first-parent BAD` shows.",
        )
    loaded = _one_cell(compare_commits.comparable(wanted, say), scenario)
    with ExitStack() as stack:
        take_host(stack, unlocked=unlocked, wait_s=wait_s)
        measuring = _Measuring(
            line=(ends[0], *between),
            loaded=loaded,
            wanted=wanted,
            most=launches or loaded.scenario.measure.launches.max,
            records=records,
            until_s=None if budget_s is None else time.monotonic() + budget_s,
            fresh=fresh,
            console=console,
            say=say,
        )
        ending = measuring.search()
    told = BisectResult(
        project=project.name,
        cell=loaded.cells[0].id,
        line=measuring.line,
        ending=ending,
        is_merge=ending is not None and project.is_merge(measuring.line[ending.bad]),
        noise=_noise(measuring, ending),
        records=tuple(dict.fromkeys(one.file for one in measuring.sessions.values())),
    )
    typer.echo(output_bisect.as_json(told) if as_json else output_bisect.text(told))
    raise typer.Exit(exit_code(ending))


def exit_code(ending: BisectionOutcome | None) -> int:
    """The exit code of a search: 0 with a commit found, 4 with a broken end, else 5."""
    if ending is None or ending.outcome in {"no difference", "undecided"}:
        return NO_ANSWER
    return LaunchError.exit_code if ending.outcome == "broken" else 0


def _noise(measuring: _Measuring, ending: BisectionOutcome | None) -> tuple[str, ...]:
    """The noise floor of the cell's scenario, for the number of launches behind the answer."""
    ends = () if ending is None else (ending.good, ending.bad)
    held = [one for places, one in measuring.sessions.items() if ends and {*ends} <= {*places}]
    if not held:
        return ()
    done = [one for one in held[-1].done if one.kind == "measure" and one.status == "ok"]
    names = [compare_commits.short(measuring.line[place]) for place in ends]
    return noise_notes.beside(
        measuring.records,
        held[-1].run,
        [measuring.loaded.source],
        launches=min(sum(one.cell.commit == name for one in done) for name in names),
    )


def _one_cell(loaded: tuple[Loaded, ...], scenario: Path) -> Loaded:
    cells = [cell for one in loaded for cell in one.cells]
    if len(loaded) == 1 and len(cells) == 1:
        return loaded[0]
    raise InputError(
        what=f"{len(cells)} cells are meant: {', '.join(cell.key for cell in cells[:8])}"
        + (", …" if len(cells) > 8 else "."),
        where=str(scenario),
        fix="A search is of one: name it with --cell.",
    )


@dataclass(slots=True, kw_only=True)
class _Measuring:
    """Measures the commits that the search asks for, reusing recorded launches if there are any."""

    line: tuple[Commit, ...]
    loaded: Loaded
    wanted: RunRequest
    most: int
    records: Path
    until_s: float | None
    fresh: bool
    console: Console
    say: Say
    sessions: dict[tuple[int, ...], PreparedRun] = field(default_factory=dict)
    preflight: tuple[HostCheck, ...] | None = None

    @property
    def least(self) -> int:
        """The number of launches before the first analysis."""
        return min(self.loaded.scenario.measure.launches.min, self.most)

    def search(self) -> BisectionOutcome | None:
        """Run the search to its end; None if the time ran out first."""
        margin = self.loaded.scenario.measure.margin
        searching = search(len(self.line) - 1, least=self.least, most=self.most, margin=margin)
        answer: Answer | None = None
        while True:
            step = _next(searching, answer)
            if isinstance(step, BisectionOutcome):
                return step
            answer = self._answer(step)
            if answer is None:
                return None

    def _answer(self, ask: Ask) -> Answer | None:
        """Compare the requested commits; None if the time ran out."""
        ready = self.sessions.get(ask.places) or self._open(ask)
        tasks = compare_commits.with_launches(ready.tasks, ask.launches)
        with ExitStack() as stack:
            launches, ending = run.execute_run(
                replace(ready, tasks=tasks),
                None if self.until_s is None else self.until_s - time.monotonic(),
                self.console,
                stack,
                operators=False,
                again=typed(),
            )
        self.sessions[ask.places] = replace(ready, done=launches)
        if ending == "out of time":
            return None
        found = {place: self._summary(place, launches, ask.launches) for place in ask.places}
        return Answer(
            log_ratios={
                (one, two): log_ratios(found[one], found[two]) for one, two in pairwise(ask.places)
            },
            broken=frozenset(place for place, of in found.items() if not of.count("ok")),
        )

    def _summary(self, place: int, launches: Sequence[Launch], before: int) -> CellSummary:
        """Summarise a commit's launches; blocks meant for a later analysis are left out."""
        name = compare_commits.short(self.line[place])
        own = [one for one in launches if one.cell.commit == name]
        in_time = [one for one in own if one.block < before]
        return summarise(own[0].cell, in_time, self.loaded.scenario.measure.warmup)

    def _open(self, ask: Ask) -> PreparedRun:
        chosen = [self.line[place] for place in ask.places]
        named = ", ".join(f"{one.sha[:8]} {one_line(one.subject)}" for one in chosen)
        self.say(f"Comparing {named}")
        loaded = compare_commits.over(
            (self.loaded,), chosen, self.wanted, launches=(self.least, max(self.most, self.least))
        )
        ready = compare_commits.opened(
            loaded, self.wanted, self.records, self.say, go_on=not self.fresh
        )
        if self.preflight is None:
            ready = doctor.preflight(ready, self.console)
            self.preflight = ready.run.preflight
        elif ready.run.preflight is None:
            ready = replace(ready, run=replace(ready.run, preflight=self.preflight))
        return ready


def _next(
    searching: Generator[Ask, Answer, BisectionOutcome], answer: Answer | None
) -> Ask | BisectionOutcome:
    """The next request of the search, or its end."""
    try:
        return next(searching) if answer is None else searching.send(answer)
    except StopIteration as ended:
        ending: BisectionOutcome = ended.value
        return ending
