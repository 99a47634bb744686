"""Which cells of a scenario an interrupted run left without enough launches."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from corebound.analysis.wording import count
from corebound.records.history import days_since_1970
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.scenario.cell import Cell
from corebound.stats.interference import is_refused
from corebound.stats.launch_summary import CellSummary, combine_launches
from corebound.stats.stopping import is_given_up

# Records store the start of a launch rounded to a second.
_ROUNDED_S = 1.0


class IncompleteRun(Struct, frozen=True, kw_only=True):
    """The cells that an interrupted run did not measure, or not often enough.

    Attributes:
        never: The number of cells without any launch.
        short: The number of cells with fewer launches than the scenario asks for.
        of: The number of cells to launch, without those that the host cannot hold.
        least: The number of launches per cell that the scenario asks for.
        budget: The time budget that ended the run, such as `1h30m`; empty if the cause is unknown.
    """

    never: int
    short: int
    of: int
    least: int
    budget: str

    @property
    def says(self) -> str:
        """A description: `3 of 4 configurations were never launched`."""
        shortage = f"fewer than the {self.least} requested launches"
        total = f"of {count(self.of, 'configuration')}"
        if self.never == self.of:
            return f"none {total} that fit this host was launched"
        if not self.never:
            return f"{self.short} {total} {'has' if self.short == 1 else 'have'} {shortage}"
        text = f"{self.never} {total} {'was' if self.never == 1 else 'were'} never launched"
        if self.short:
            text += f", {self.short} {'has' if self.short == 1 else 'have'} {shortage}"
        return text


def find_incomplete(
    requested: Sequence[Cell],
    launched: Mapping[str, Sequence[Launch]],
    summaries: Mapping[str, CellSummary],
    *,
    least: int,
    budget: str,
) -> IncompleteRun | None:
    """The cells of a scenario that the run left incomplete; None if the run is complete.

    A record does not store how a run ended. But a complete run leaves no requested cell below the
    minimum number of launches, unless it gave up that cell.

    Args:
        requested: The cells of the scenario that the run was asked for.
        launched: The measuring launches of each launched cell, by cell key.
        summaries: The summaries of those cells, by cell key.
        least: The number of launches per cell that the scenario asks for.
        budget: As returned by `spent_budget`.
    """
    fitting = [key for key, summary in summaries.items() if not summary.count("skipped")]
    never_count = sum(cell.key not in launched for cell in requested)
    short_count = 0
    for key in fitting:
        attempted = [launch for launch in launched[key] if not is_refused(launch)]
        short_count += len(attempted) < least and not _is_given_up(summaries[key], attempted)
    if not never_count and not short_count:
        return None
    return IncompleteRun(
        never=never_count,
        short=short_count,
        of=len(fitting) + never_count,
        least=least,
        budget=budget,
    )


def _is_given_up(summary: CellSummary, made: Sequence[Launch]) -> bool:
    """Whether the run gave up the cell. `made` leaves out refused launches: a run repeats those."""
    return is_given_up(combine_launches(summary.cell, summary.launches, made))


def spent_budget(run: Run, launches: Sequence[Launch]) -> str:
    """The run's budget if its launches show that it ran out: `1h30m`; else empty.

    It ran out if the last launch began within it, and it had no time for launches that took as long
    as the longest so far. A launch that began later belongs to a command that resumed the run;
    records do not store that command's budget.

    Args:
        launches: All of its launches, of every scenario, in any order.
    """
    if run.budget_s is None or not launches:
        return ""
    began = days_since_1970(run.started_at)
    last = max(launches, key=lambda launch: (launch.started_at, launch.duration_ns))
    last_began = days_since_1970(last.started_at)
    if began is None or last_began is None:
        return ""
    took_s = {launch.id: launch.duration_ns / 1e9 for launch in launches}

    def together_s(launch: Launch) -> float:
        return sum(took_s.get(launch_id, 0.0) for launch_id in (launch.id, *launch.started_with))

    last_began_s = (last_began - began) * 86_400
    another_s = last_began_s + together_s(last) + max(map(together_s, launches))
    is_up = last_began_s - _ROUNDED_S <= run.budget_s <= another_s + _ROUNDED_S
    return _as_typed(run.budget_s) if is_up else ""


def _as_typed(budget_s: float) -> str:
    """A duration as `--budget` accepts it.

    >>> _as_typed(14_400), _as_typed(5_430), _as_typed(0)
    ('4h', '1h30m30s', '0s')
    """
    minutes, seconds = divmod(round(budget_s), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"
