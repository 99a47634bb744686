"""What stands beside a change: how much is noise here, and what compares its two commits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from corebound.cli.regressions_commits import Pair, pair_of
from corebound.cli.regressions_suite import Suite
from corebound.model.calibration import Calibration
from corebound.report.view.command import continuous_words
from corebound.report.view.noise import calibration_for, noise_words
from corebound.stats.regressions import Change
from corebound.store import calibrations


class Beside(Struct, frozen=True, kw_only=True):
    """For the eye.

    Attributes:
        noise: The noise floor of the change's scenario, in a sentence; empty where unknown.
        compare: The command that measures both of its commits in turns, asv's where asv
            measured it; empty where the change is of none that can be built.
    """

    noise: str = ""
    compare: tuple[str, ...] = ()


def beside(found: Iterable[Change], suite: Suite, records: Path) -> Mapping[str, Beside]:
    """What stands beside each change, by its id."""
    known, _ = calibrations.read_all(records)
    return {
        change.id: Beside(noise=_noise(change, suite, known), compare=_compare(change, suite))
        for change in found
    }


def _noise(change: Change, suite: Suite, known: tuple[Calibration, ...]) -> str:
    last = change.series.points[-1]
    run = suite.runs.get(last.run or "")
    if run is None:
        return ""
    source = run.source_of(change.series.scenario)
    calibration = calibration_for(known, run, source) if source else None
    return noise_words(calibration, launches=len(last.launches))


def _compare(change: Change, suite: Suite) -> tuple[str, ...]:
    pair = pair_of(change, suite)
    if pair is not None:
        return _command(pair)
    return continuous_words(change.series, change.last_good.commit, change.first_bad.commit)


def _command(pair: Pair) -> tuple[str, ...]:
    words = ("corebound", "compare-commits", pair.good.sha[:10], pair.bad.sha[:10], str(pair.path))
    profile = () if pair.run.profile is None else ("--profile", pair.run.profile)
    only = ("--only", pair.cell.key) if pair.cell.axes else ()
    return (*words, *profile, *only)
