"""Which launches count, and why others do not."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from corebound.analysis.scenario_result import CellResult
from corebound.analysis.wording import count
from corebound.groups import grouped
from corebound.records.launch_record import CONTINUES, Launch, Status
from corebound.records.telemetry import Cause
from corebound.stats import interference

_NOT_COUNTED: dict[Status, str] = {
    "dropped": "dropped from a race",
    "invalid": "not run as requested",
    "failed": "failed",
    "timed-out": "timed out",
}
# What a disturbance of each kind did to a launch.
DISTURBED: dict[Cause, str] = {
    "steal": "disturbed by the hypervisor",
    "throttling": "throttled by a quota",
    "foreign load": "disturbed by other programs",
    "suspension": "suspended",
}


def discarded_launches(launches: Iterable[Launch]) -> list[tuple[Launch, str]]:
    """The launches that do not count, and why in few words: all pages and the terminal use it.

    Skipped and profiling launches are not included: they are not meant to count.

    Args:
        launches: All launches of some cells of one or more runs.
    """
    meant = (
        launch for launch in launches if launch.kind == "measure" and launch.status != "skipped"
    )
    by_cell = grouped(meant, lambda launch: (launch.run, launch.cell.id))
    return [
        (launch, _discarded_as(launch))
        for made in by_cell.values()
        for counted in [counted_launches(made)]
        for launch in made
        if not any(launch is other for other in counted)
    ]


def _discarded_as(launch: Launch) -> str:
    disturbance = launch.disturbance
    if launch.status == "dropped" and launch.share_s is not None:
        return "too slow for the budget"
    if disturbance is None or not (disturbance.refused or launch.status == "ok"):
        return _NOT_COUNTED.get(launch.status, launch.status)
    refusal = interference.refusal_of(launch)
    if refusal == "unlike threads":
        return "busy threads differed from the baseline"
    if refusal == "partner disturbed" or not disturbance.by:
        return "alternated with a disturbed launch"
    return DISTURBED[disturbance.by[0]]


class LaunchCounts(Struct, frozen=True, kw_only=True):
    """How many launches count, and how many do not.

    Attributes:
        disturbed: How many of those were disturbed nevertheless.
        discarded: (reason, how many) of those that do not count, most first.
        skipped, profiled: Records of launches that were not meant to count.
    """

    counted: int
    disturbed: int
    discarded: tuple[tuple[str, int], ...]
    skipped: int
    profiled: int

    @property
    def total_discarded(self) -> int:
        """How many do not count, whatever the reason."""
        return sum(number for _, number in self.discarded)

    @property
    def headline(self) -> str:
        """How many do not count: `44 of 56 launches discarded`, `3 launches, none discarded`."""
        lost = self.total_discarded
        made = count(self.counted + lost, "launch", "launches")
        return f"{lost:,} of {made} discarded" if lost else f"{made}, none discarded"

    @property
    def reasons(self) -> str:
        """Why: `3 failed, 1 timed out`; one reason has no number. Empty if all count."""
        if len(self.discarded) == 1:
            return self.discarded[0][0]
        return ", ".join(f"{number:,} {reason}" for reason, number in self.discarded)

    @property
    def note(self) -> str:
        """What limits the trust in values of these launches; empty if nothing does."""
        made = count(self.counted, "launch", "launches")
        return "; ".join(
            (
                *((f"{self.disturbed:,} of {made} disturbed",) if self.disturbed else ()),
                *((f"{self.headline}: {self.reasons}",) if self.discarded else ()),
            )
        )

    @property
    def says(self) -> str:
        """All of it: `4 of 9 launches discarded: 3 failed, 1 timed out; 2 skipped`."""
        counted = ": ".join(filter(None, (self.headline, self.reasons)))
        return "; ".join((counted, *self.others))

    @property
    def others(self) -> tuple[str, ...]:
        """The launches that were not meant to count: `2 skipped`."""
        return (
            *((f"{self.skipped:,} skipped",) if self.skipped else ()),
            *((f"{self.profiled:,} more that profiled operators",) if self.profiled else ()),
        )


def launch_counts(launches: Iterable[Launch]) -> LaunchCounts:
    """Count launches by whether and why they do not count."""
    every = [*launches]
    discarded = discarded_launches(every)
    reasons = Counter(reason for _, reason in discarded)
    lost = {id(launch) for launch, _ in discarded}
    measuring = [launch for launch in every if launch.kind == "measure"]
    skipped = sum(launch.status == "skipped" for launch in measuring)
    return LaunchCounts(
        counted=len(measuring) - skipped - len(lost),
        disturbed=sum(
            launch.status == "ok" and interference.is_mostly_disturbed(launch)
            for launch in measuring
            if id(launch) not in lost
        ),
        discarded=tuple(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))),
        skipped=skipped,
        profiled=len(every) - len(measuring),
    )


def counted_launches(launches: Iterable[Launch]) -> list[Launch]:
    """Those of a cell's launches that its value is computed from."""
    return interference.select_undisturbed(
        [launch for launch in launches if launch.status == "ok"],
        interference.is_mostly_disturbed,
        within_run=True,
    )


def disturbed(cell: CellResult) -> tuple[Launch, ...]:
    """The launches behind a cell's value that are marked as disturbed from outside."""
    ids = {summary.launch for summary in cell.summary.launches if summary.disturbed}
    return tuple(launch for launch in cell.launches if launch.id in ids)


def evidence_of(launch: Launch) -> tuple[str, ...]:
    """The evidence for the launch's status that the reason does not already contain."""
    return tuple(reason for reason in launch.evidence if reason not in (launch.reason or ""))


def fix_of(launch: Launch, others: Iterable[Launch]) -> str:
    """How the user can fix it; for a refused launch also whether it was repeated.

    Args:
        others: All launches of its run, or of its cell.
    """
    fix = launch.fix or ""
    if not interference.is_refused(launch):
        return fix
    was_repeated = any(
        other.cell.id == launch.cell.id
        and other.block == launch.block
        and other.attempt == launch.attempt + 1
        for other in others
    )
    outcome = "Launched again." if was_repeated else "The run ended before another attempt."
    return f"{outcome} {fix.removeprefix(CONTINUES).lstrip()}".rstrip()


def first_reason(launches: Iterable[Launch]) -> str:
    """The reason of the first discarded launch, else of the first skipped one; may be empty."""
    skipped = ""
    for launch in launches:
        if launch.reason and launch.status != "skipped":
            return launch.reason
        skipped = skipped or launch.reason or ""
    return skipped
