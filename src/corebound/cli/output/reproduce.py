"""The output of `corebound reproduce`: text and JSON."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from corebound import units
from corebound.analysis.comparison import RUNS_CAVEAT, spread_words
from corebound.analysis.serialize import between_runs_document, comparison_document
from corebound.analysis.wording import NO_ESTIMATE
from corebound.cli.output.json import indented
from corebound.records.run_record import Run
from corebound.scenario.cell import Cell
from corebound.stats.between_runs import BetweenRuns
from corebound.stats.comparison import Comparison
from corebound.stats.intervals import is_usable


class ReproduceResult(Struct, frozen=True, kw_only=True):
    """The result of a reproduction; pairs hold the recorded value, then the new one.

    Attributes:
        cell: The cell.
        before, after: The runs.
        records: Their files.
        medians_ns: Time of an iteration.
        launches: The number of launches of each.
        comparison: The new result relative to the recorded one.
        between: The cell's run-to-run variation.
        margin: The largest difference that counts as equal.
        differing: Properties of host and environment that changed.
        noise: The noise floor of the cell's scenario, if it was calibrated, in a sentence.
    """

    cell: Cell
    before: Run
    after: Run
    records: tuple[Path, Path]
    medians_ns: tuple[float, float]
    launches: tuple[int, int]
    comparison: Comparison
    between: BetweenRuns
    margin: float
    differing: tuple[str, ...]
    noise: tuple[str, ...]

    @property
    def holds(self) -> bool | None:
        """Whether the result is reproduced; None if the launches are inconclusive."""
        verdict, ratio = self.comparison.verdict, self.comparison.speedup_ratio
        if verdict == "equivalent":
            return True
        beyond = not 1 / (1 + self.margin) <= ratio <= 1 + self.margin
        return False if verdict in {"faster", "slower"} and beyond else None


def text(told: ReproduceResult) -> str:
    """Render the result as text, without a final newline."""
    then_ns, now_ns = told.medians_ns
    then, now = told.launches
    figures = (
        f"{units.duration(then_ns)} then ({then} launches), {units.duration(now_ns)} now ({now})"
    )
    lines = [
        _answer(told),
        f"{told.cell.id}: {figures}; it takes {_size(told)} the time.",
        *(f"But {one}." for one in told.differing),
    ]
    commit = told.before.commit
    if commit is not None and commit.dirty and commit.tree is None:
        lines.append("Then, changes that were not committed were in it; now they are not.")
    return "\n".join(
        (
            *lines,
            RUNS_CAVEAT,
            spread_words(told.between),
            *told.noise,
            f"Records: {told.records[1]}",
        )
    )


def _answer(told: ReproduceResult) -> str:
    if told.holds:
        return f"= The figure holds: equivalent, within ±{units.percent(told.margin, 0)}."
    if told.holds is False:
        return f"{'▼' if _is_slower(told) else '▲'} It does not hold: {told.comparison.verdict}."
    needed = told.comparison.launches_needed
    more = f" About {needed} launches would tell: --launches {needed}." if needed else ""
    return f"? It cannot be told: {told.comparison.verdict}.{more}"


def _is_slower(told: ReproduceResult) -> bool:
    return told.comparison.verdict == "slower"


def _size(told: ReproduceResult) -> str:
    ratio, bounds = 1 / told.comparison.speedup_ratio, told.comparison.interval
    if bounds is None:
        return f"{ratio:.3f}×"
    if not is_usable(bounds.low, bounds.high):
        return f"{ratio:.3f}× ({NO_ESTIMATE})"
    return f"{ratio:.3f}× ({1 / bounds.high:.3f}–{1 / bounds.low:.3f}, 95 %)"


def as_json(told: ReproduceResult) -> str:
    """Render the result as JSON."""
    compared = told.comparison
    document = {
        "cell": told.cell.id,
        "holds": told.holds,
        **comparison_document(compared, "verdict", "slowdown_ratio", "slowdown_interval"),
        "margin": told.margin,
        "then_ns": told.medians_ns[0],
        "now_ns": told.medians_ns[1],
        "launches": told.launches,
        **comparison_document(compared, "launches_needed"),
        "between_runs": between_runs_document(told.between),
        "seed": told.after.seed,
        "commit": told.before.commit,
        "differing": told.differing,
        "noise": told.noise,
        "records": [str(file) for file in told.records],
    }
    return indented(document)
