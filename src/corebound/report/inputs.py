"""What a site is made from, and what all of its pages share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from corebound.analysis.advice import RaceDecision
from corebound.analysis.change_history import EMPTY_HISTORY, ChangeHistory
from corebound.analysis.host_comparison import HostComparison
from corebound.analysis.host_records import Record
from corebound.analysis.run_comparison import PastResults
from corebound.analysis.tuning import TuneResult
from corebound.analysis.tuning_checks import ArtefactProof, Verification
from corebound.analysis.tuning_loads import LoadsResult
from corebound.errors import Fault
from corebound.parallel import Mapper, serial_map
from corebound.records.calibration import Calibration
from corebound.records.decisions import Confirmation, Decision
from corebound.records.history import Series
from corebound.records.launch_record import ImportedProfile
from corebound.stats.history.incremental import SegmentCache


class RequestedComparison(Struct, frozen=True, kw_only=True):
    """Two runs by their ids, or two commits by hash if an imported project is named."""

    before: str
    after: str
    project: str | None = None


Progress = Callable[[str, int, int], None]


class SiteInputs(Struct, frozen=True, kw_only=True):
    """All data and options that a site is made from.

    Attributes:
        records: The runs to show with their launches, in any order.
        now: ISO timestamp to put on the pages.
        recorded: The number of recorded runs of each host, by its id; empty if `records` has all.
        series: Histories: our own, joined over the runs, and imported ones.
        memory: Histories of the peak memory of our own.
        past: The results of each cell in all runs, including calibrations and reproductions. They
            show how much two runs differ without a change.
        decisions: Decisions that people made about changes, in the order of their file.
        confirmations: Results of re-runs of changes.
        calibrations: The noise of hosts, for the verdicts.
        cache: Change points that earlier analyses found; new ones are added.
        stamps: For each run, by its id, a value that changes if its records change. Pages of
            unchanged runs are not made again.
        tunings: The latest results of `corebound tune`, each with the files that set its winner.
        verifications: The latest check of each of these, by the id of its run, if there is one.
        loads: The same results together, where only their loads differ.
        hosts: The results of several hosts, compared; None for one host.
        compared: Pairs that get a comparison page in addition to the latest runs.
        records_folder: The folder of records that commands on pages have to name; empty for the
            default folder.
        address: The address that the site will have, for link previews; empty if unknown.
        only: The requested names, or patterns of names; empty for everything.
        faults: Records that could not be read.
        mapper: Applies a function to many series or pages.
        progress: Called with a task's name, the number of items done, and their total number.
        warn: Called with one line about each requested part that the pages lack.
    """

    records: Sequence[Record]
    now: str
    recorded: Mapping[str, int] = field(default_factory=dict)
    profiles: Sequence[ImportedProfile] = ()
    series: Sequence[Series] = ()
    memory: Sequence[Series] = ()
    past: PastResults = field(default_factory=dict)
    decisions: Sequence[Decision] = ()
    confirmations: Sequence[Confirmation] = ()
    calibrations: Sequence[Calibration] = ()
    cache: SegmentCache | None = None
    stamps: Mapping[str, str] = field(default_factory=dict)
    tunings: Sequence[tuple[TuneResult, Sequence[ArtefactProof]]] = ()
    verifications: Mapping[str, Verification] = field(default_factory=dict)
    loads: Sequence[LoadsResult] = ()
    hosts: HostComparison | None = None
    compared: Sequence[RequestedComparison] = ()
    records_folder: str = ""
    address: str = ""
    only: Sequence[str] = ()
    faults: Sequence[Fault] = ()
    mapper: Mapper = serial_map
    progress: Progress = lambda _what, _done, _all: None
    warn: Callable[[str], None] = lambda _text: None


class PageContext(Struct, frozen=True, kw_only=True):
    """What the pages of one site share.

    Attributes:
        now: ISO timestamp to put on the pages.
        history: All series with their changes, and the decisions about them.
        memory: The same of peak memory.
        calibrations: Calibrations of any host and scenario.
        races: What races of `corebound tune` decided, by the scenario's name and the host's id.
    """

    now: str
    history: ChangeHistory = EMPTY_HISTORY
    memory: ChangeHistory = EMPTY_HISTORY
    calibrations: Sequence[Calibration] = ()
    races: Mapping[tuple[str, str], RaceDecision] = field(default_factory=dict)
