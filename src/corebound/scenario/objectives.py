"""What `corebound tune` may compare, each objective declared once."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from corebound.scenario.cell import Cell
from corebound.scenario.metrics import Metric

Objective = Literal["latency", "throughput", "rate", "cost", "metric"]


class ObjectiveSpec(Struct, frozen=True, kw_only=True):
    """What distinguishes an objective from others.

    Attributes:
        help: What it is, in a few words, for the help of the command.
        words: What a configuration is called that is better than another, and one that is worse.
        is_cpu_time: Whether a launch is judged by its CPU time, instead of its elapsed time.
        is_of_all_workers: Whether a launch is judged by what its workers do together.
        varies_workers: Whether the number of workers may change.
        is_of_metric: Whether a command that reports a metric is judged by it.
        needs_metric: Whether there must be one; it is then the default.
        shown_as: What its times are shown as, if not as times.
    """

    help: str
    value: str
    words: tuple[str, str]
    is_cpu_time: bool = False
    is_of_all_workers: bool = False
    varies_workers: bool = False
    is_of_metric: bool = False
    needs_metric: bool = False
    shown_as: Metric | None = None

    def value_of(self, cell: Cell) -> str:
        """What a value of a cell is."""
        return cell.metric.name if self.is_of_metric and cell.metric else self.value

    def shown(self, cell: Cell) -> Cell:
        """A cell whose values have the unit of the objective."""
        return replace(cell, metrics=(self.shown_as,)) if self.shown_as else cell

    def words_of(self, cell: Cell) -> tuple[str, str]:
        """What a cell is called that is better than another, and one that is worse."""
        return cell.words_in_sentence if self.is_of_metric and cell.metric else self.words


OBJECTIVES: Mapping[Objective, ObjectiveSpec] = {
    "latency": ObjectiveSpec(
        help="time of an iteration",
        value="time of an iteration",
        words=("faster", "slower"),
    ),
    "throughput": ObjectiveSpec(
        help="of all workers",
        value="time per iteration of all workers",
        words=("more throughput", "less throughput"),
        is_of_all_workers=True,
        varies_workers=True,
        is_of_metric=True,
    ),
    # The highest arrival rate of a server within a latency bound, as the time between two requests.
    "rate": ObjectiveSpec(
        help="of a server's requests within --bound",
        value="highest rate within the bound",
        words=("more requests per second", "fewer requests per second"),
        varies_workers=True,
        shown_as=Metric(name="highest rate", unit="requests/s", better="higher"),
    ),
    "cost": ObjectiveSpec(
        help="CPU time",
        value="CPU time of an iteration",
        words=("less CPU time", "more CPU time"),
        is_cpu_time=True,
    ),
    "metric": ObjectiveSpec(
        help="the first metric that a command reports, the default if it reports one",
        value="metric",
        words=("better", "worse"),
        is_of_metric=True,
        needs_metric=True,
    ),
}


def objectives_help() -> str:
    """All objectives with what they are; the first is the default."""
    (default, *_), names = OBJECTIVES, OBJECTIVES.items()
    return (
        "; ".join(
            f"{name}{', the default' if name == default else ''}: {spec.help}"
            for name, spec in names
        )
        + "."
    )
