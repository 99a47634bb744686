"""Write the site of records of which some raise an error: without those, and naming them."""

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from corebound.errors import CoreboundError, analysis_fault
from corebound.records import documents, history_files, jsonl
from corebound.records.history import Series
from corebound.records.launch_record import ImportedProfile
from corebound.records.run_record import Run, ScenarioSource
from corebound.report import site
from corebound.report.inputs import SiteInputs


class _Part(NamedTuple):
    """One recorded thing that the site shows: what it is, its file and its name there."""

    what: str
    file: Path
    name: str = ""


class _Parts:
    """The parts of a site's inputs, and the inputs with some of them only."""

    def __init__(self, inputs: SiteInputs, records: Path) -> None:
        self._inputs = inputs
        self._records = records

    def every(self) -> list[_Part]:
        inputs = self._inputs
        runs = (self._of_run(run, source) for run, _ in inputs.records for source in run.scenarios)
        races = (self._of_race(result.run) for result, _ in inputs.tunings)
        profiles = map(self._of_profile, inputs.profiles)
        return [*runs, *races, *profiles, *map(self._of_series, inputs.series)]

    def only(self, kept: Collection[_Part]) -> SiteInputs:
        inputs, runs = self._inputs, []
        for run, launches in inputs.records:
            sources = tuple(each for each in run.scenarios if self._of_run(run, each) in kept)
            names = {each.document.get("name") for each in sources}
            own = [launch for launch in launches if launch.cell.scenario in names]
            if sources or not run.scenarios:
                runs.append((replace(run, scenarios=sources), own))
        races = [races_ for races_ in inputs.tunings if self._of_race(races_[0].run) in kept]
        left = [result for result, _ in inputs.tunings if self._of_race(result.run) not in kept]
        return replace(
            inputs,
            records=runs,
            tunings=races,
            loads=[races_ for races_ in inputs.loads if not any(map(races_.has, left))],
            profiles=[each for each in inputs.profiles if self._of_profile(each) in kept],
            series=[each for each in inputs.series if self._of_series(each) in kept],
            stamps={},  # of runs that may lack a part now
        )

    def _of_run(self, run: Run, source: ScenarioSource) -> _Part:
        return _Part("this run", jsonl.file_of(run, self._records), source.path)

    def _of_race(self, run: Run) -> _Part:
        return _Part("this race", jsonl.file_of(run, documents.tunes_folder(self._records)))

    def _of_profile(self, profile: ImportedProfile) -> _Part:
        return _Part("this profile", documents.PROFILES.file_of(profile, self._records))

    def _of_series(self, series: Series) -> _Part:
        file = self._records
        if series.project is not None:
            file = history_files.file_of(series.project, self._records)
        return _Part(f"the series {series.id}", file, series.id)


def write_without_faulty(
    inputs: SiteInputs, write: Callable[[SiteInputs], Path], records: Path
) -> Path:
    """Write a site; if that raises an error that is a bug, without the parts that raise it.

    Halving finds those parts: each of them raises an error by itself.

    Args:
        inputs: What the site is made from; its `warn` is called with each part that is left out.
        write: Writes the site, and returns its first page.

    Raises:
        CoreboundError: As `write` does. Any other error has no part that raises it by itself.
    """
    try:
        return write(inputs)
    except CoreboundError:
        raise
    except Exception:  # one part must not cost the site
        parts = _Parts(inputs, records)
        bad = [] if _error(parts, ()) else [*_raising(parts, parts.every())]
        if not bad:
            raise
        faults = [analysis_fault(str(part.file), error, what=part.what) for part, error in bad]
        for fault in faults:
            inputs.warn(str(fault))
        kept = set(parts.every()).difference(part for part, _ in bad)
        return write(replace(parts.only(kept), faults=(*inputs.faults, *faults)))


def _raising(parts: _Parts, some: Sequence[_Part]) -> Iterator[tuple[_Part, Exception]]:
    """Those that raise an error by themselves, each with it."""
    error = _error(parts, some)
    if error is None:
        return
    if len(some) < 2:
        yield from ((part, error) for part in some)
        return
    middle = len(some) // 2
    yield from _raising(parts, some[:middle])
    yield from _raising(parts, some[middle:])


def _error(parts: _Parts, some: Sequence[_Part]) -> Exception | None:
    """What a site of these parts raises."""
    try:
        site.rehearse(replace(parts.only(some), compared=(), warn=lambda _: None))
    except Exception as error:  # noqa: BLE001  # it is reported with its part
        return error
    return None
