"""The change points of all histories, as typed rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from corebound.analysis.json_documents import interval_columns
from corebound.api.tables import CHANGES
from corebound.exchange.run_export import axis_columns, frame
from corebound.present.regressions import regressions_document
from corebound.present.shown import Shown
from corebound.report.urls import pages_at
from corebound.scenario.metrics import JudgedBy
from corebound.stats.history.alerts import HistoryChange
from corebound.workflow.regressions import AnalysedHistory

if TYPE_CHECKING:
    import pandas as pd


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


def regressions_of(analysed: AnalysedHistory, site: str, metric: JudgedBy) -> Regressions:
    """The changes of all histories; see `Results.regressions`."""
    address, folder = pages_at(site, metric), analysed.records_folder
    return Regressions(
        changes=tuple(analysed.history.assessed.values()),
        document=regressions_document(analysed.history, address, records=folder),
    )
