"""All series with their change points, and the decisions about them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.series_names import cell_name, long_environments
from corebound.analysis.wording import Label, VerdictWord, label
from corebound.parallel import Mapper, serial_map
from corebound.records.decisions import Answer, Confirmation, Decision
from corebound.records.history import Series
from corebound.scenario.cell import Cell
from corebound.stats.history.alerts import JudgedChange, judged
from corebound.stats.history.incremental import SegmentCache
from corebound.stats.history.regressions import Change, Failing, analyse, failing
from corebound.stats.history.series import ended
from corebound.stats.history.too_short import too_short
from corebound.units import significant

_ANSWERS: dict[Answer, str] = {
    "confirmed": "confirmed",
    "refuted": "not confirmed",
    "undecided": "measured again, which does not tell",
    "impossible": "could not be measured again",
}


def answer_words(confirmation: Confirmation) -> str:
    """What it said, when, and how."""
    return f"{_ANSWERS[confirmation.answer]} ({confirmation.at[:10]}): {confirmation.how}"


# What has no binding mode to be coloured by.
PLAIN_MODE = "m-history"


class ChangeHistory(Struct, frozen=True, kw_only=True):
    """The series and their changes.

    Attributes:
        series: By id.
        changes: Those that stand as some of all, or that a re-run confirmed, the latest first,
            of equals the largest.
        clear: The same by their series' id, oldest first.
        unclear: Those that do not, largest first.
        doubtful: The same by their series' id, oldest first.
        suspicions: What two nights say, and no vote can yet; largest first.
        judged: What was decided of each of these, and what re-runs said, by its id.
        cells: The cells of our own scenarios, by the scenario's name and the cell's key.
        ended: Ids of the series that have had no point of late, while others of their host
            or machine have: nothing in them is news.
        too_short: Ids of the series that cannot tell a change yet.
        failing: By their ids, the others that end in points without a figure.
        not_analysed: By their ids, why series could not be analysed: no change is known of them.
        environments: Of each project what long names of environments are shown as, by
            `environment=NAME`.
    """

    series: tuple[Series, ...]
    clear: Mapping[str, tuple[Change, ...]]
    unclear: tuple[Change, ...]
    cells: Mapping[tuple[str, str], Cell]
    changes: tuple[Change, ...] = ()
    doubtful: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    suspicions: tuple[Change, ...] = ()
    judged: Mapping[str, JudgedChange] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()
    too_short: frozenset[str] = frozenset()
    failing: Mapping[str, Failing] = field(default_factory=dict)
    not_analysed: Mapping[str, str] = field(default_factory=dict)
    environments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def histories(self) -> tuple[Series, ...]:
        """The series that there is something to look at of."""
        return tuple(one for one in self.series if has_grown(one))

    @property
    def news(self) -> tuple[Change, ...]:
        """The changes that stand, are new, and that nobody has accepted or seen fixed."""
        return tuple(one for one in self.changes if self.is_news(one))

    @property
    def undecided(self) -> tuple[Change, ...]:
        """What is new, and may be a change or not: refuted, not clear, or only suspected."""
        return tuple(
            one
            for several in (self.changes, self.unclear, self.suspicions)
            for one in several
            if self.judged[one.id].is_undecided
        )

    def is_news(self, change: Change) -> bool:
        """Whether the night's verdict has to name a change, as `corebound regressions` does."""
        return self.judged[change.id].alarm or self.judged[change.id].is_gain

    def of(self, series: Series) -> tuple[Change, ...]:
        """The clear changes of one series, oldest first."""
        return self.clear.get(series.id, ())

    def every(self, series: Series) -> tuple[Change, ...]:
        """All changes of one series, clear or not, oldest first: between them it has levels."""
        both = (*self.of(series), *self.doubtful.get(series.id, ()))
        return tuple(sorted(both, key=_at))

    def status(self, change: Change) -> str:
        """In a word: what was decided, else what a re-run or the series itself says."""
        about = self.judged[change.id]
        if about.decision is not None:
            return "open" if about.is_back else about.state
        if not (change.clear or about.alarm):
            return "not clear"
        if about.is_undecided:
            return "not confirmed"
        if change.step.status == "recovered":
            return "recovered"
        if change.series.id in self.ended:
            return "ended"
        return "open" if change.is_regression else "kept"

    def because(self, change: Change) -> str:
        """Why it was decided so; empty where nobody did, or it is there all the same."""
        about = self.judged[change.id]
        return "" if about.decision is None or about.is_back else about.decision.because

    def answer(self, change: Change) -> str:
        """What a re-run said, when and how; empty where none did."""
        confirmation = self.judged[change.id].confirmation
        return "" if confirmation is None else answer_words(confirmation)

    def label(self, series: Series) -> Label:
        """What to call a series' cell among those of its scenario."""
        cell = None if series.project else self.cells.get((series.scenario, series.cell))
        if cell is not None:
            return label(cell)
        shown = self.environments.get(series.project or "", {})
        name = cell_name(series, shown) or "the only one"
        return Label(mode=PLAIN_MODE, name=name, more="")

    def grown(self, *, project: str | None, scenario: str) -> tuple[Series, ...]:
        """The series of one scenario that there is something to look at of, by id."""
        return tuple(
            one
            for one in self.series
            if one.project == project and one.scenario == scenario and has_grown(one)
        )


def chronicle(
    series: Iterable[Series],
    studies: Sequence[ScenarioResult] = (),
    *,
    decisions: Sequence[Decision] = (),
    confirmations: Sequence[Confirmation] = (),
    memory: SegmentCache | None = None,
    mapper: Mapper = serial_map,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> ChangeHistory:
    """Look for changes in all the series together.

    Args:
        series: Our own, joined over the runs, and those that were imported.
        studies: Those that know the cells of our own.
        decisions: What people decided of changes, in the order of their file.
        confirmations: What re-runs said of changes.
        memory: Steps that were found before.
        mapper: As in `changes`.
        progress: As there.
    """
    suite = tuple(sorted(series, key=lambda one: one.id))
    over = ended(suite)
    grown = [one for one in suite if has_grown(one)]
    shown = analyse(suite, ended=over, memory=memory, mapper=mapper, progress=progress)
    found, early = shown.changes, shown.early_warnings
    not_analysed = {one.series.id: one.reason for one in shown.not_analysed}
    about = judged((*found, *early), decisions, confirmations, ended=over)
    standing = [one.change for one in about if one.change.clear or one.alarm]
    stand = {one.id for one in standing}
    others, suspected = (
        tuple(one for one in several if one.id not in stand) for several in (found, early)
    )
    return ChangeHistory(
        series=suite,
        changes=tuple(sorted(standing, key=_place, reverse=True)),
        clear=_by_series(standing),
        unclear=others,
        doubtful=_by_series(others),
        suspicions=suspected,
        judged={one.change.id: one for one in about},
        cells={
            (study.scenario.name, cell.key): cell for study in studies for cell in study.planned
        },
        ended=over,
        too_short=frozenset(
            one.id for one in too_short(one for one in suite if one.id not in not_analysed)
        ),
        failing={one.series.id: one for one in failing(one for one in grown if one.id not in over)},
        not_analysed=not_analysed,
        environments=_environments(suite),
    )


def _environments(suite: Iterable[Series]) -> dict[str, dict[str, str]]:
    by_project: dict[str, list[Series]] = {}
    for one in suite:
        if one.project is not None:
            by_project.setdefault(one.project, []).append(one)
    return {project: long_environments(several) for project, several in by_project.items()}


def _by_series(found: Iterable[Change]) -> dict[str, tuple[Change, ...]]:
    by_id: dict[str, list[Change]] = {}
    for change in found:
        by_id.setdefault(change.series.id, []).append(change)
    return {name: tuple(sorted(several, key=_at)) for name, several in by_id.items()}


def _at(change: Change) -> int:
    return change.step.at


def _place(change: Change) -> tuple[str, float, str]:
    return change.first_bad.at, abs(change.step.ratio - 1), change.id


EMPTY = ChangeHistory(series=(), clear={}, unclear=(), cells={})


def has_grown(series: Series) -> bool:
    """Whether there is a history to look at: two figures.

    Of an imported series one is enough, for no other page has it.
    """
    least = 2 if series.project is None else 1
    figures = itertools.filterfalse(math.isnan, series.points.figures)
    return len(tuple(itertools.islice(figures, least))) == least


def size_word(change: Change) -> VerdictWord:
    """How large a change is, and which way: `▼ 4.5 % slower`.

    Where it doubled or halved, as a multiple.
    """
    return sizes_word((change,))


def sizes_word(found: Sequence[Change]) -> VerdictWord:
    """How large changes the same way are, from the least: `▼ 4.5 to 7.1 % slower`.

    Args:
        found: At least one, of one unit.
    """
    by_size = sorted(found, key=lambda one: abs(one.step.ratio - 1))
    (least, least_in), (most, most_in) = _amount(by_size[0]), _amount(by_size[-1])
    ends = [most + most_in]
    if least + least_in != most + most_in:
        ends.insert(0, least if least_in == most_in else least + least_in)
    worse = found[0].is_regression
    return VerdictWord(
        tone="bad" if worse else "good",
        sign="▼" if worse else "▲",
        word=f"{' to '.join(ends)} {way_word(found[0])}",
    )


def way_word(change: Change) -> str:
    """Which way a change went; what is no time has no speed."""
    if change.series.unit == "ns":
        return "slower" if change.is_up else "faster"
    return "more" if change.is_up else "less"


def _amount(change: Change) -> tuple[str, str]:
    """A change's size, and what it is counted in."""
    ratio = change.step.ratio
    factor = ratio if change.is_up else 1 / ratio
    if factor >= 2:
        return significant(factor), "×"
    return f"{abs(ratio - 1) * 100:.1f}", " %"


def size_interval(change: Change) -> str:
    """Where the size lies, 95 %, in the unit of `size_word`; empty where it is not known."""
    interval = change.step.interval
    if interval is None:
        return ""
    ends = (interval.low, interval.high)
    ratio = change.step.ratio
    if max(ratio, 1 / ratio) >= 2:
        ends = ends if change.is_up else (1 / ends[1], 1 / ends[0])
        return f"[{significant(ends[0])}, {significant(ends[1])}]×"
    shares = sorted((end - 1) * 100 * (1 if change.is_up else -1) for end in ends)
    return f"[{shares[0]:.1f}, {shares[1]:.1f}] %"
