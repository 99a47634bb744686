"""What a run that ended early left undone of a scenario, as its records show it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from corebound.report.view.asked import asked
from corebound.report.view.study import CellStudy, Study
from corebound.report.view.words import count
from corebound.stats.disturbance import is_refused
from corebound.stats.stopping import given_up
from corebound.stats.summary import gather


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What a run did not come to.

    Attributes:
        never: How many cells have no launch at all.
        short: How many have fewer launches than the scenario asks for.
        of: How many cells there were to launch; those that the host cannot hold are none.
        least: How many launches of each the scenario asks for.
        budget: What the run was told to end by, such as `100s`; empty where it was not.
    """

    never: int
    short: int
    of: int
    least: int
    budget: str

    @property
    def says(self) -> str:
        """In words: `3 of 4 cells were never launched`."""
        fewer = f"fewer than the {self.least} launches asked for"
        of = f"of {count(self.of, 'cell')}"
        if self.never == self.of:
            return f"none {of} that fit this host was launched"
        if not self.never:
            return f"{self.short} {of} {'has' if self.short == 1 else 'have'} {fewer}"
        said = f"{self.never} {of} {'was' if self.never == 1 else 'were'} never launched"
        if self.short:
            said += f", {self.short} {'has' if self.short == 1 else 'have'} {fewer}"
        return said


def undone(study: Study) -> Undone | None:
    """What the run left undone of a scenario; None where it did all that was asked.

    A record does not say how a run ended. But no run that was carried out leaves a cell it was
    asked for without the least number of launches, unless that cell was given up.
    """
    least = study.measure.launches.min
    fitting = [one for one in study.cells if not one.summary.count("skipped")]
    wanted = asked(study.planned, study.run.only)
    never = sum(cell.key not in study.by_key for cell in wanted)
    short = sum(_made(one) < least and not _is_given_up(one) for one in fitting)
    if not never and not short:
        return None
    return Undone(
        never=never, short=short, of=len(fitting) + never, least=least, budget=_budget(study)
    )


def _is_given_up(cell: CellStudy) -> bool:
    made = [launch.status for launch in cell.launches if not is_refused(launch)]
    return given_up(gather(cell.cell, cell.summary.launches, made))


def _made(cell: CellStudy) -> int:
    """How many launches count as made; one that was refused was to be made again."""
    return sum(not is_refused(launch) for launch in cell.launches)


def _budget(study: Study) -> str:
    words = study.run.argv
    for word, value in pairwise(words):
        if word == "--budget":
            return value
        if word.startswith("--budget="):
            return word.partition("=")[2]
    return ""
