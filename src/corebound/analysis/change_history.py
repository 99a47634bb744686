"""All series with their change points, and the decisions about them."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from corebound.analysis import wording
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.series_names import cell_name, long_environments
from corebound.analysis.triage import CommitEntry, change_factor, commit_entries, triage
from corebound.groups import grouped
from corebound.parallel import Mapper, serial_map
from corebound.records.decisions import Answer, Confirmation, Decision
from corebound.records.history import EnvironmentKey, HistoryPoint, Series, is_primary
from corebound.scenario.cell import PROJECT, Cell
from corebound.scenario.metrics import LESS_MEMORY
from corebound.stats.history.alerts import HistoryChange, assess_changes
from corebound.stats.history.incremental import SegmentCache
from corebound.stats.history.latest import LatestDifference, latest_difference
from corebound.stats.history.pooled import pooling
from corebound.stats.history.regressions import (
    Change,
    Failing,
    analyse,
    arrays_of,
    failing,
    min_values_to_detect,
)
from corebound.stats.history.series import retired_series
from corebound.stats.intervals import is_usable_ratio, ratio_interval_pair

_ANSWERS: dict[Answer, str] = {
    "confirmed": "confirmed",
    "refuted": "not confirmed",
    "inconclusive": "measured again, inconclusive",
    "impossible": "could not be measured again",
}


def rerun_note(confirmation: Confirmation) -> str:
    """The result of a re-run, its date, and how it was measured."""
    return f"{_ANSWERS[confirmation.answer]} ({confirmation.at[:10]}): {confirmation.how}"


# The colour class of series that have no binding mode.
NO_BINDING_MODE = "m-history"


class ChangeContext(Struct, frozen=True, kw_only=True):
    """What the records of a change's runs add to it.

    Attributes:
        noise: The noise floor of the change's scenario, in a sentence; empty if unknown.
        compare: The command that measures both commits interleaved, asv's command for asv's
            series; empty if the commits cannot be built.
    """

    noise: str = ""
    compare: tuple[str, ...] = ()


class ChangeHistory(Struct, frozen=True, kw_only=True, dict=True):
    """All series with their change points, and the decisions about them.

    Attributes:
        series: All series, by id.
        changes: Changes that are significant after correction, or that a re-run confirmed; the
            latest first, then the largest first.
        unclear: All other changes, largest first.
        early_warnings: Shifts in the last two points only, not yet confirmed by the
            detectors; largest first.
        assessed: For the id of each change and early warning, the decision about it and the
            results of re-runs.
        cells: The cells of our own scenarios, by scenario name and cell key.
        retired_series: Ids of series that have no recent point, while other series of their host or
            machine have. No change in them is new.
        too_short: Ids of the series with too few points to detect a change.
        failing: The series that are not retired and whose latest points have no value, by id.
        not_analysed: Why a series could not be analysed, by its id. No change in such a series is
            known.
        shown_by_several: The ids of changes of single hosts that several hosts show together, as a
            change of their own.
        environments: For each project, the short forms of long environment names, by
            `environment=NAME`.
        contexts: What else is known of a change, by its id.
    """

    series: tuple[Series, ...]
    cells: Mapping[tuple[str, str], Cell]
    changes: tuple[Change, ...] = ()
    unclear: tuple[Change, ...] = ()
    early_warnings: tuple[Change, ...] = ()
    assessed: Mapping[str, HistoryChange] = field(default_factory=dict)
    retired_series: frozenset[str] = frozenset()
    too_short: frozenset[str] = frozenset()
    failing: Mapping[str, Failing] = field(default_factory=dict)
    not_analysed: Mapping[str, str] = field(default_factory=dict)
    shown_by_several: frozenset[str] = frozenset()
    environments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    contexts: Mapping[str, ChangeContext] = field(default_factory=dict)

    @cached_property
    def histories(self) -> tuple[Series, ...]:
        """The series with enough points to show a history."""
        return tuple(series for series in self.series if has_history(series))

    @property
    def news(self) -> tuple[Change, ...]:
        """New changes that need attention: significant, and neither accepted nor seen fixed.

        One that several hosts show counts once.
        """
        return tuple(
            change
            for change in self.changes
            if self.is_news(change) and change.id not in self.shown_by_several
        )

    @property
    def active(self) -> tuple[Series, ...]:
        """The series that are not retired."""
        return tuple(series for series in self.series if series.id not in self.retired_series)

    @cached_property
    def failing_histories(self) -> Mapping[str, Failing]:
        """Those of the failing series that have a history, to which pages link."""
        return {name: each for name, each in self.failing.items() if has_history(each.series)}

    @cached_property
    def entries(self) -> tuple[CommitEntry, ...]:
        """The significant and confirmed changes, by commit, the latest first."""
        return triage(self.assessed.values())

    @property
    def alarms(self) -> tuple[HistoryChange, ...]:
        """The new regressions of primary benchmarks, which determine the exit code.

        One that several hosts show together counts once.
        """
        return tuple(each for each in self._alarms if is_primary(each.change.series))

    @property
    def secondary_alarms(self) -> tuple[HistoryChange, ...]:
        """The new regressions of secondary benchmarks."""
        return tuple(each for each in self._alarms if not is_primary(each.change.series))

    @property
    def _alarms(self) -> tuple[HistoryChange, ...]:
        return tuple(
            each
            for name, each in self.assessed.items()
            if each.is_alarm and name not in self.shown_by_several
        )

    @cached_property
    def built(self) -> frozenset[str]:
        """The ids of our own series that measure builds of the commits under test."""
        by_command = {
            each.change.series.id
            for name, each in self.assessed.items()
            if self.context(name).compare[:1] == ("corebound",)
        }
        return frozenset(
            series.id
            for series in self.series
            if series.id in by_command
            or (
                series.project is None
                and (cell := self.cells.get((series.scenario, series.cell))) is not None
                and cell.environment == PROJECT
                and cell.commit is None
            )
        )

    def context(self, change: str) -> ChangeContext:
        """What else is known of a change, by its id."""
        return self.contexts.get(change, ChangeContext())

    @property
    def suspected(self) -> tuple[HistoryChange, ...]:
        """Possible regressions that do not alarm yet."""
        return tuple(
            each for each in self.assessed.values() if each.is_regression and each.is_inconclusive
        )

    @property
    def not_significant(self) -> tuple[HistoryChange, ...]:
        """The changes that are neither of a commit's entry nor suspected."""
        entered = {each.change.id for entry in self.entries for each in entry.changes}
        return tuple(
            each
            for name, each in self.assessed.items()
            if name not in entered and not (each.is_regression and each.is_inconclusive)
        )

    @property
    def inconclusive(self) -> tuple[Change, ...]:
        """New changes and early warnings that are inconclusive.

        They are refuted, not clear, or unconfirmed.
        """
        return tuple(
            change
            for group in (self.changes, self.unclear, self.early_warnings)
            for change in group
            if self.assessed[change.id].is_inconclusive
        )

    def is_news(self, change: Change) -> bool:
        """Whether the nightly verdict reports a change, as `corebound regressions` does."""
        return self.assessed[change.id].is_alarm or self.assessed[change.id].is_gain

    def changes_of(self, series: Series) -> tuple[Change, ...]:
        """The significant changes of one series, oldest first."""
        return self._by_series.get(series.id, ())

    def all_changes_of(self, series: Series) -> tuple[Change, ...]:
        """All changes of one series, significant or not, oldest first.

        The series has one level between each two.
        """
        return self._all_by_series.get(series.id, ())

    @cached_property
    def _by_series(self) -> Mapping[str, tuple[Change, ...]]:
        return _grouped(self.changes)

    @cached_property
    def _all_by_series(self) -> Mapping[str, tuple[Change, ...]]:
        return _grouped((*self.changes, *self.unclear))

    def because(self, change: Change) -> str:
        """The reason for the decision; empty without a decision, or if the change has come back."""
        assessed = self.assessed[change.id]
        return "" if assessed.decision is None or assessed.is_back else assessed.decision.because

    def answer(self, change: Change) -> str:
        """The result of a re-run, with its date and method; empty without a re-run."""
        confirmation = self.assessed[change.id].confirmation
        return "" if confirmation is None else rerun_note(confirmation)

    def label(self, series: Series) -> wording.Label:
        """The name of a series' cell within its scenario."""
        cell = None if series.project else self.cells.get((series.scenario, series.cell))
        if cell is not None:
            return wording.label(cell)
        short_names = self.environments.get(series.project or "", {})
        name = cell_name(series, short_names) or "the only one"
        return wording.Label(mode=NO_BINDING_MODE, name=name, more="")

    def histories_of(self, scenario: str) -> tuple[Series, ...]:
        """The series of one of our own scenarios that have enough points to show, by id."""
        return tuple(
            series
            for series in self.histories
            if series.project is None and series.scenario == scenario
        )


def build_change_history(
    series: Iterable[Series],
    results: Sequence[ScenarioResult] = (),
    *,
    decisions: Sequence[Decision] = (),
    confirmations: Sequence[Confirmation] = (),
    cache: SegmentCache | None = None,
    mapper: Mapper = serial_map,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> ChangeHistory:
    """Find the changes in all series together, and match them with decisions and re-runs.

    Args:
        series: Our own series, joined over the runs, and imported ones.
        results: The results of the scenarios that define the cells of our own series.
        decisions: Decisions that people made about changes, in the order of their file.
        mapper: As in `analyse`.
        progress: As in `analyse`.
    """
    suite = tuple(sorted(series, key=lambda entry: entry.id))
    retired = retired_series(suite)
    analysis = analyse(suite, retired=retired, cache=cache, mapper=mapper, progress=progress)
    # Points that are read on use are read once for all changes of a series; later, by commit.
    for change in sorted(analysis.changes, key=lambda each: each.series.id):
        _ = change.last_good, change.first_bad, change.recovered_between
    history = ChangeHistory(
        series=suite,
        changes=analysis.changes,
        early_warnings=analysis.early_warnings,
        cells={
            (result.scenario.name, cell.key): cell for result in results for cell in result.planned
        },
        retired_series=retired,
        too_short=analysis.too_short,
        failing={
            entry.series.id: entry
            for entry in failing(entry for entry in suite if entry.id not in retired)
        },
        not_analysed=analysis.not_analysed,
        environments=_environments(suite),
    )
    return assess_history(history, decisions, confirmations)


def assess_history(
    history: ChangeHistory, decisions: Sequence[Decision], confirmations: Sequence[Confirmation]
) -> ChangeHistory:
    """Match the changes of all series with decisions and with re-runs, which may be newer ones."""
    every = [each.change for each in history.assessed.values()] or [
        *history.changes,
        *history.early_warnings,
    ]
    assessed = assess_changes(every, decisions, confirmations, retired=history.retired_series)
    accepted = [each for each in assessed if each.is_significant or each.is_alarm]
    others = [each.change for each in assessed if not (each.is_significant or each.is_alarm)]
    return replace(
        history,
        changes=tuple(sorted((each.change for each in accepted), key=_sort_key, reverse=True)),
        unclear=tuple(change for change in others if not change.change_point.is_early),
        early_warnings=tuple(change for change in others if change.change_point.is_early),
        assessed={each.change.id: each for each in assessed},
        shown_by_several=_shown_by_several(accepted),
    )


def _shown_by_several(assessed: Sequence[HistoryChange]) -> frozenset[str]:
    """The ids of changes that more hosts together show as well."""
    ids: set[str] = set()
    for entry in commit_entries(assessed):
        for impact in (entry.regressions, entry.improvements):
            widest: dict[tuple[str, str], int] = {}
            changes = [each.change for each in impact.changes]
            for change in changes:
                key = change.series.scenario, change.series.cell
                widest[key] = max(widest.get(key, 0), pooling(change.series))
            ids.update(
                change.id
                for change in changes
                if pooling(change.series) < widest[change.series.scenario, change.series.cell]
            )
    return frozenset(ids)


def _environments(suite: Iterable[Series]) -> dict[str, dict[str, str]]:
    by_project = grouped(suite, lambda series: series.project)
    return {project: long_environments(own) for project, own in by_project.items() if project}


def _grouped(changes: Iterable[Change]) -> dict[str, tuple[Change, ...]]:
    oldest_first = sorted(changes, key=lambda change: change.change_point.at)
    by_series = grouped(oldest_first, lambda change: change.series.id)
    return {name: tuple(own) for name, own in by_series.items()}


def _sort_key(change: Change) -> tuple[str, float, str]:
    return change.first_bad.at, abs(change.change_point.ratio - 1), change.id


EMPTY_HISTORY = ChangeHistory(series=(), cells={})


def has_history(series: Series) -> bool:
    """Whether a series has enough points to show a history: two values.

    For an imported series one value is enough, because no other page shows it.
    """
    needed = 2 if series.project is None else 1
    return series.points.value_count >= needed


def change_size(change: Change) -> wording.VerdictWord:
    """The size and direction of a change: `▼ 1.05× slower`."""
    return change_sizes((change,))


def change_sizes(changes: Sequence[Change]) -> wording.VerdictWord:
    """The range of sizes of changes in one direction: `▼ 1.05 to 1.31× slower`.

    Args:
        changes: At least one change; all have the same unit.
    """
    factors = [change_factor(change) for change in changes]
    smallest, largest = wording.times(min(factors)), wording.times(max(factors))
    size = largest if smallest == largest else f"{smallest.removesuffix('×')} to {largest}"
    worse = changes[0].is_regression
    return wording.VerdictWord(
        tone="bad" if worse else "good",
        sign="▼" if worse else "▲",
        word=f"{size} {change_direction(changes[0])}",
    )


def change_direction(change: Change) -> str:
    """The direction of a change: slower or faster for times, more or less for other units."""
    if change.series.is_of_time:
        return "slower" if change.is_up else "faster"
    return (
        f"{'more' if change.is_up else 'less'} {'memory' if change.series.metric else ''}".rstrip()
    )


def size_interval(change: Change) -> str:
    """The 95 % interval of the size, as in `change_size`; empty if none is usable.

    One on both sides of 1 is the difference of the values in per cent.
    """
    ends = ratio_interval_pair(change.change_point.interval)
    return wording.speed_bounds(*ends) if ends else ""


def size_with_interval(change: Change) -> str:
    """The size of a change: `▼ 1.05× slower (95 % CI 1.03–1.07)`."""
    word, interval = change_size(change), size_interval(change)
    uncertainty = f"95 % CI {interval}" if interval else "too few points for an interval"
    return f"{word.sign} {word.word} ({uncertainty})"


_ALL, _PART, _MORE = "fully recovered", "partly recovered", "more than recovered"


def recovered_amount(change: Change) -> str:
    """How much of a change was recovered, and in how many change points: `partly recovered`.

    Args:
        change: A change that later change points reverted at least partly.
    """
    amount, steps, is_clear = _recovered(change)
    count = f" in {steps} steps, the last" if steps > 1 else ""
    return f"{'' if is_clear else 'perhaps '}{amount}{count}"


def remaining_change(changes: Sequence[Change]) -> str:
    """The level after the recoveries relative to before the changes; empty if equal.

    Args:
        changes: At least one; all have the same `recovered_amount`.
    """
    amount = _recovered(changes[0])[0]
    if amount == _ALL:
        return ""
    size = change_sizes([_since(change) for change in changes])
    return f"{'still ' if amount == _PART else ''}{size.word} than before it"


def _recovered(change: Change) -> tuple[str, int, bool]:
    """How much was recovered, in how many change points, and whether the last of them is clear."""
    recovery = change.change_point.recovery
    if recovery is None:
        return "", 0, False
    amount = _PART
    if recovery.whole:
        is_beyond = abs(math.log(recovery.left)) >= math.log1p(change.series.margin)
        amount = _MORE if is_beyond else _ALL
    return amount, recovery.steps, change.back_is_clear


def _since(change: Change) -> Change:
    """A change as if it went from the level before it to the level after its recovery."""
    left = (
        change.change_point.recovery.left
        if change.change_point.recovery
        else change.change_point.ratio
    )
    return replace(
        change,
        change_point=replace(
            change.change_point, ratio=left, direction="up" if left > 1 else "down"
        ),
    )


def commit_range(last_good: HistoryPoint, first_bad: HistoryPoint) -> str:
    """The commits that a change came in, as a git range; empty if unknown.

    >>> from support.build import a_point
    >>> commit_range(a_point(day=1), a_point(day=17))
    '0000000000..0000000000'
    >>> commit_range(a_point(day=1, commit=None), a_point(day=2, commit=None))
    ''
    """
    good_commit, bad_commit = last_good.commit, first_bad.commit
    if bad_commit is None:
        return ""
    if good_commit is None:
        return f"up to {bad_commit.sha[:10]}"
    return f"{good_commit.sha[:10]}..{bad_commit.sha[:10]}"


_DIGEST = re.compile(r"[0-9a-f]{12}")


def is_digest(value: str) -> bool:
    """Whether an environment value is a hash, which has no meaning for people."""
    return _DIGEST.fullmatch(value) is not None


def environment_difference(environment: EnvironmentKey, other_environment: EnvironmentKey) -> str:
    """The differences from one environment to the other; empty if they are the same.

    >>> environment_difference((("kernel", "6.1"), ("os", "a")), (("kernel", "7.0"), ("os", "a")))
    'kernel 6.1 to 7.0'
    """
    values, other_values = dict(environment), dict(other_environment)
    differences = []
    for name in dict.fromkeys((*values, *other_values)):
        before, after = values.get(name, ""), other_values.get(name, "")
        if before == after:
            continue
        is_hash = is_digest(before) or is_digest(after)
        differences.append(
            f"different {name}" if is_hash else f"{name} {before or 'none'} to {after or 'none'}"
        )
    return ", ".join(differences)


def latest_text(series: Series) -> str:
    """The latest value of a series that is too short for a verdict: `1.09× slower than …`.

    It has the uncertainty of the difference, and how many values a verdict takes.
    """
    difference = latest_difference(arrays_of(series))
    values = 1 if difference is None else difference.before + 1
    missing = max(min_values_to_detect() - values, 1)
    needed = f"a verdict takes at least {wording.count(missing, 'more value')}"
    if difference is None:
        return f"one value yet; {needed}"
    speed, words = difference.ratio, ("more", "less")
    if series.metric:
        words = LESS_MEMORY[::-1]
    if series.is_of_time:
        speed, words = 1 / difference.ratio, ("faster", "slower")
    others = "the value" if difference.before == 1 else f"the mean of {difference.before} values"
    return (
        f"the latest is {wording.relative_speed(speed, words=words)} than {others} before it"
        f" ({_prediction(difference)}); {needed}"
    )


def _prediction(difference: LatestDifference) -> str:
    interval = difference.interval
    if interval is None:
        return "their spread is unknown yet"
    if not is_usable_ratio(*interval.ends):
        return "too few values for an interval"
    inside = "; within their spread" if interval.contains(1) else ""
    return f"95 % CI {wording.speed_bounds(*interval.ends)}{inside}"
