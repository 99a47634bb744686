"""Groups and orders the records of several runs."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from corebound.groups import grouped
from corebound.records.calibration import Calibration
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run

Record = tuple[Run, Sequence[Launch]]


def by_host(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records of each host, oldest first; hosts are sorted by id."""
    ordered = sorted(records, key=lambda record: (record[0].host.id, *moment(record)))
    return grouped(ordered, lambda record: record[0].host.id)


def moment(record: Record) -> tuple[str, str]:
    """The key that orders records in time; the id breaks ties."""
    run, _ = record
    return run.started_at, run.id


# Enough for one page; older runs remain in the records.
_MOST_RUNS = 100


class HostRecords(Struct, frozen=True, kw_only=True):
    """A host with its runs and calibrations.

    Attributes:
        runs: Its runs, oldest first, at least one.
        calibrations: The latest of each scenario and profile, as long as a verdict may use it.
        recorded: The number of its recorded runs, of which `runs` may be the latest.
    """

    runs: tuple[Run, ...]
    calibrations: tuple[Calibration, ...]
    recorded: int

    @property
    def latest_runs(self) -> tuple[Run, ...]:
        """The runs that are shown, latest first."""
        return self.runs[: -_MOST_RUNS - 1 : -1]


def group_by_host(
    records: Sequence[Record],
    calibrations: Sequence[Calibration] = (),
    recorded: Mapping[str, int] | None = None,
) -> tuple[HostRecords, ...]:
    """Each host of the records, by id.

    Args:
        records: The runs to show with their launches, in any order.
        recorded: The number of recorded runs of each host, by its id; None if `records` has all.
    """
    return tuple(
        HostRecords(
            runs=tuple(run for run, _ in own),
            calibrations=_latest(host, calibrations),
            recorded=(recorded or {}).get(host, len(own)),
        )
        for host, own in by_host(records).items()
    )


def _latest(host: str, calibrations: Sequence[Calibration]) -> tuple[Calibration, ...]:
    latest: dict[tuple[str, str], Calibration] = {}
    for calibration in sorted(
        calibrations, key=lambda calibration: (calibration.at, calibration.run)
    ):
        if calibration.host == host:
            latest[calibration.scenario, calibration.profile or "no profile"] = calibration
    return tuple(
        calibration for _, calibration in sorted(latest.items(), key=lambda entry: entry[0])
    )
