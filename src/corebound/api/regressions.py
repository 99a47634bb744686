"""The change points of all histories, as typed rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from corebound.analysis.serialize import interval_columns
from corebound.analysis.triage import change_status
from corebound.api.tables import CHANGES
from corebound.exchange.run_export import axis_columns, frame
from corebound.present.shown import Shown
from corebound.records.decisions import State
from corebound.records.run_record import Commit
from corebound.scenario.cell import axes_of_key
from corebound.stats.history.alerts import AssessedChange
from corebound.stats.intervals import Ends, ratio_interval_pair
from corebound.workflow.regressions import AnalysedHistory
from corebound.workflow.regressions_document import regressions_document

if TYPE_CHECKING:
    import pandas as pd


class HistoryChange(Shown, frozen=True, kw_only=True):
    """A lasting change of one series, or an early warning of one.

    Attributes:
        id: What `Results.decide` takes, and `corebound regressions --accept`.
        scenario: The scenario, or the benchmark of an imported history.
        cell: The configuration, such as `binding=none,threads=2`.
        axes: The same by axis; values are text.
        project: The project of an imported history.
        host: The host's id.
        unit: `ns` for times.
        is_regression: Whether it got worse.
        is_alarm: Whether it is a new regression without a decision.
        is_significant: Whether it is significant after correction for all series.
        state: The decision about it: `open`, `accepted` or `fixed`.
        status: Its status as the pages show it.
        ratio: The value after the change over the value before.
        interval: The 95 % confidence interval of `ratio`, (low, high); None if unknown.
        last_good: The commit of the last point before it; None if that point has none.
        first_bad: The commit of the first point after it; None if that point has none.
        since: When it most likely began, ISO 8601 in UTC.
    """

    shown: ClassVar = (
        "id", "scenario", "cell", "host", "status", "ratio", "interval", "last_good", "first_bad",
        "since",
    )  # fmt: skip

    id: str
    scenario: str
    cell: str
    axes: Mapping[str, str]
    project: str | None
    host: str
    unit: str
    is_regression: bool
    is_alarm: bool
    is_significant: bool
    state: State
    status: str
    ratio: float
    interval: Ends | None
    last_good: Commit | None
    first_bad: Commit | None
    since: str


class Regressions(Shown, frozen=True, kw_only=True):
    """All changes, largest first.

    Attributes:
        changes: The changes and early warnings.
        document: The same as plain data, as `corebound regressions --json` prints it.
    """

    shown: ClassVar = ("id", "scenario", "cell", "status", "ratio", "since")

    changes: tuple[HistoryChange, ...]
    document: Mapping[str, Any]

    def __len__(self) -> int:
        """The number of changes."""
        return len(self.changes)

    def __iter__(self) -> Iterator[HistoryChange]:
        """Every change."""
        return iter(self.changes)

    @property
    def alarms(self) -> tuple[HistoryChange, ...]:
        """The new regressions without a decision."""
        return tuple(change for change in self.changes if change.is_alarm)

    def to_frame(self) -> pd.DataFrame:
        """One row for each change, with a column for each attribute and axis (`axis_…`)."""
        return frame(
            (
                {
                    **{name: getattr(change, name) for name in CHANGES if hasattr(change, name)},
                    **interval_columns("ratio", change.interval),
                    "last_good": change.last_good.sha if change.last_good else None,
                    "first_bad": change.first_bad.sha if change.first_bad else None,
                    **axis_columns(change.axes.items()),
                }
                for change in self.changes
            ),
            CHANGES,
        )


def regressions_of(history: AnalysedHistory, site: str) -> Regressions:
    """The changes of all histories; see `Results.regressions`."""
    result = history.result()
    return Regressions(
        changes=tuple(_change(assessed) for assessed in result.changes),
        document=regressions_document(result, site),
    )


def _change(assessed: AssessedChange) -> HistoryChange:
    change = assessed.change
    series, step = change.series, change.change_point
    return HistoryChange(
        id=assessed.id,
        scenario=series.scenario,
        cell=series.cell,
        axes=axes_of_key(series.cell),
        project=series.project,
        host=series.host,
        unit=series.unit,
        is_regression=change.is_regression,
        is_alarm=assessed.alarm,
        is_significant=change.clear,
        state=assessed.state,
        status=change_status(assessed),
        ratio=step.ratio,
        interval=ratio_interval_pair(step.interval),
        last_good=change.last_good.commit,
        first_bad=change.first_bad.commit,
        since=change.since,
    )
