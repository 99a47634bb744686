"""What the writer of a site is handed: all that is known of records, histories and decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from corebound.analysis.comparison import Past
from corebound.analysis.records import Record
from corebound.errors import Fault
from corebound.parallel import Mapper, serial_map
from corebound.records.calibration import Calibration
from corebound.records.decisions import Confirmation, Decision
from corebound.records.history import Series
from corebound.records.launch_record import ImportedProfile
from corebound.stats.history.incremental import SegmentCache
from corebound.stats.profiles import Profiles


class Pair(Struct, frozen=True, kw_only=True):
    """Two runs by their ids; where an imported project is named, two of its commits by hash."""

    before: str
    after: str
    project: str | None = None


Progress = Callable[[str, int, int], None]


class Inputs(Struct, frozen=True, kw_only=True):
    """What a site is made of, as whoever wants it made knows it.

    Attributes:
        records: Every run with its launches, in any order.
        now: ISO moment to put on the pages.
        profiles: Operator profiles that were imported.
        series: Histories, our own joined over the runs, and imported ones.
        past: What runs said of each cell, calibrations and reproductions too: it tells how
            much two runs differ by themselves.
        decisions: What people decided of changes, in the order of their file.
        confirmations: What re-runs said of changes.
        calibrations: The noise of hosts, for the verdicts.
        memory: Steps that were found before; what is found now is added.
        sources: For each imported project a hash of all that its series are read from:
            of what has not changed the pages are not made again.
        stamps: For each run, by its id, what tells whether its records are as they were:
            if so its page is not made again.
        profiled: The operator profiles of each run, by its id.
        compared: What gets a page beside the latest runs.
        records_folder: The folder of records as commands on pages have to name it; empty
            where that is the usual one.
        only: Names, or patterns of them, that were asked for; empty where all of it was.
        faults: What of the records could not be read.
        mapper: Does what is the same for many series or pages.
        progress: Called with what is done, how many of it are, and of how many.
        warn: Called with what the pages lack that was to be there, in a line.
    """

    records: Sequence[Record]
    now: str
    profiles: Sequence[ImportedProfile] = ()
    series: Sequence[Series] = ()
    past: Past = field(default_factory=dict)
    decisions: Sequence[Decision] = ()
    confirmations: Sequence[Confirmation] = ()
    calibrations: Sequence[Calibration] = ()
    memory: SegmentCache | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    stamps: Mapping[str, str] = field(default_factory=dict)
    profiled: Mapping[str, Profiles] = field(default_factory=dict)
    compared: Sequence[Pair] = ()
    records_folder: str = ""
    only: Sequence[str] = ()
    faults: Sequence[Fault] = ()
    mapper: Mapper = serial_map
    progress: Progress = lambda _what, _done, _all: None
    warn: Callable[[str], None] = lambda _text: None
