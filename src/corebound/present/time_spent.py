"""Where the time of a run went, as a sentence and as a table."""

from __future__ import annotations

from collections.abc import Mapping

from corebound.analysis.time_spent import TimeSpent
from corebound.analysis.wording import total_time
from corebound.present.sections import Column, Sentence, Table
from corebound.units import percent

_NAMES = {
    "start_up": "start-up",
    "warm_up": "warm-up",
    "measuring": "measuring",
    "discarded": "discarded launches",
    "profiling": "profiling",
    "between": "between launches",
}


def time_sentence(spent: Mapping[str, TimeSpent], between: TimeSpent) -> Sentence:
    """The parts of the whole run: `Time: 61 % start-up, 8 % warm-up, 31 % measuring.`"""
    whole = sum(spent.values(), between)
    parts = (f"{_share(part, whole)} {name}" for part, name in _NAMES.items() if whole[part])
    return Sentence(f"Time: {', '.join(parts) or 'none'}.")


def time_table(spent: Mapping[str, TimeSpent], between: TimeSpent) -> Table:
    """The parts of each scenario's time and of the whole run's, where there are any."""
    whole = sum(spent.values(), between)
    rows = {**spent, "the run": whole} if len(spent) > 1 or between.total() else spent
    shown = [part for part in _NAMES if whole[part]]
    return Table(
        title="Where the time went",
        columns=(
            Column("scenario"),
            Column("total", "number"),
            *(Column(_NAMES[part], "number") for part in shown),
        ),
        rows=tuple(
            (name, total_time(own.total()), *(_share(part, own) for part in shown))
            for name, own in rows.items()
        ),
    )


def _share(part: str, whole: TimeSpent) -> str:
    return percent(whole[part] / whole.total(), 0) if whole[part] else "–"
