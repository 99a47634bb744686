"""The machines that a benchmark was measured on, as its results describe them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corebound.model.points import Circumstances, Moment
from corebound.model.series import Series
from corebound.report.view.chronicle import Chronicle
from corebound.report.view.last_measured import last_measured
from corebound.report.view.provenance import Fact
from corebound.report.view.series_names import environments

# A circumstance that says how the benchmark was written, and nothing of the machine.
_VERSION = "benchmark"


def described(series: Sequence[Series], known: Chronicle) -> Iterator[Fact]:
    """Each machine as the latest of these results describe it, those that go on first.

    Behind them each environment whose name is too long to be told beside every figure.

    Args:
        series: Those of one benchmark, at least one.
        known: Which of them have ended.
    """
    latest: dict[str, tuple[Moment, Circumstances]] = {}
    machines: dict[str, list[Series]] = {}
    for one in series:
        last = one.points.moments[-1], one.points.circumstances[-1]
        latest[one.host_name] = max(latest.get(one.host_name, last), last, key=_when)
        machines.setdefault(one.host_name, []).append(one)
    called = environments(series)
    over = {name: all(one.id in known.ended for one in own) for name, own in machines.items()}
    for name in sorted(machines, key=lambda name: (over[name], name)):
        moment, circumstances = latest[name]
        told = [f"{of} {value}" for of, value in circumstances if value and of != _VERSION]
        told += [f"environment {called[whole]}" for whole in environments(machines[name])]
        told.append(last_measured(moment))
        yield Fact(term=name, value=", ".join(told))
    for whole, short in called.items():
        if short != whole:
            yield Fact(term=short, value=whole)


def _when(told: tuple[Moment, Circumstances]) -> str:
    return told[0].at
