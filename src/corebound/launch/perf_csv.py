"""What `perf stat -x,` writes, read: pure.

A line is value, unit, event, time counted in nanoseconds, per cent of the time that it was
counted, and two columns of a metric that is not used here (perf-stat(1), CSV FORMAT).

A processor with two kinds of cores has a PMU for each kind, and a line an event for each PMU:
`cpu_core/cycles/` and `cpu_atom/cycles/`. An event is idle while its process runs on the other
kind, so perf scales each count up as if the process had run on that kind all the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

# Of the top-down method; the kernel names these events where the processor has them, and
# counts each in slots: on Intel level 1 since Ice Lake, level 2 since Sapphire Rapids.
LEVEL_1 = {
    "topdown-retiring": "retiring",
    "topdown-bad-spec": "bad_speculation",
    "topdown-fe-bound": "frontend_bound",
    "topdown-be-bound": "backend_bound",
}
MEMORY_BOUND = "topdown-mem-bound"

FIELDS = {
    "cycles": "cycles",
    "instructions": "instructions",
    "LLC-load-misses": "llc_misses",
    "node-load-misses": "remote_loads",
}


# What a kind of cores without an event can have done in the rest of the time is no more than
# what separates two launches anyway.
_NEARLY_ALL = 0.99


class Count(Struct, frozen=True, kw_only=True):
    """One event.

    Attributes:
        value: Its count, scaled by perf to the whole time; None with `reason` where
            there is none.
        running_share: The share of the time that it was really counted.
        reason: `not supported` by this host, or `not counted` though it might be.
        by_pmu: Where several kinds of cores counted it: by PMU, what each counted, not scaled.
    """

    value: float | None
    running_share: float
    reason: str | None = None
    by_pmu: Mapping[str, float] = field(default_factory=dict)


def parse(text: str) -> dict[str, Count]:
    r"""Every event by its name without modifiers; lines that are none are left out.

    Lines of one event on several PMUs become one count.

    >>> found = parse("# started\n\n10,,cycles:u,500,50.00,,\n<not supported>,,slots,0,100.00,,\n")
    >>> found["cycles"].value, found["cycles"].running_share
    (10.0, 0.5)
    >>> found["slots"].reason
    'not supported'
    """
    found: dict[str, dict[str, Count]] = {}
    for line in text.splitlines():
        fields = line.split(",")
        if line.startswith("#") or len(fields) < 5 or not fields[2]:
            continue
        try:
            value = None if fields[0].startswith("<") else float(fields[0])
            running = float(fields[4]) / 100
        except ValueError:
            continue  # a metric's line, or one of a perf that writes another format
        reason = fields[0].strip("<>") if value is None else None
        pmu, event = _parts(fields[2])
        found.setdefault(event, {})[pmu] = Count(value=value, running_share=running, reason=reason)
    return {event: _over_pmus(by_pmu) for event, by_pmu in found.items()}


def _parts(event: str) -> tuple[str, str]:
    """`cpu_core/topdown-retiring/u` is `topdown-retiring` on `cpu_core`."""
    pmu, name = event.split("/")[:2] if event.count("/") >= 2 else ("", event)
    return pmu, name.partition(":")[0]


def _over_pmus(by_pmu: Mapping[str, Count]) -> Count:
    """One event's counts on the PMUs of several kinds of cores, as one.

    What each really counted is added, and scaled to the whole time by the share of it that
    any of them counted. A PMU that counted nothing was not run on. One that does not support
    the event leaves the sum unknown, unless the others counted nearly all the time.
    """
    if len(by_pmu) == 1:
        return next(iter(by_pmu.values()))
    really = {
        pmu: one.value * one.running_share
        for pmu, one in by_pmu.items()
        if one.value is not None and one.running_share > 0
    }
    running = sum(by_pmu[pmu].running_share for pmu in really)
    reasons = {one.reason for one in by_pmu.values()}
    unsupported = [pmu for pmu, one in by_pmu.items() if one.reason == "not supported"]
    if not really:
        reason = "not supported" if reasons == {"not supported"} else "not counted"
        return Count(value=None, running_share=0.0, reason=reason)
    if unsupported and running < _NEARLY_ALL:
        reason = f"not supported on {', '.join(unsupported)}"
        return Count(value=None, running_share=running, reason=reason)
    return Count(
        value=sum(really.values()) / running, running_share=min(1.0, running), by_pmu=really
    )


def together(each: Sequence[Mapping[str, Count]]) -> dict[str, Count]:
    """The counts of several processes' `perf stat` added up; at least one.

    What is missing of any of them is missing of the whole, with that one's reason.

    >>> one = {"cycles": Count(value=10.0, running_share=1.0)}
    >>> two = {"cycles": Count(value=5.0, running_share=0.5)}
    >>> together([one, two])["cycles"].value
    15.0
    """
    absent = Count(value=None, running_share=0.0, reason="not counted")
    found = {}
    for event in dict.fromkeys(event for counts in each for event in counts):
        parts = [counts.get(event, absent) for counts in each]
        values = [part.value for part in parts if part.value is not None]
        found[event] = Count(
            value=sum(values) if len(values) == len(parts) else None,
            running_share=min(part.running_share for part in parts),
            reason=next((part.reason for part in parts if part.reason is not None), None),
            by_pmu={
                pmu: sum(part.by_pmu.get(pmu, 0.0) for part in parts)
                for pmu in dict.fromkeys(pmu for part in parts for pmu in part.by_pmu)
            },
        )
    return found


def fields_of(counts: Mapping[str, Count]) -> dict[str, Any]:
    """The fields of `model.telemetry.Counters` that events tell; some are `unavailable`."""
    known = {name: one for name, one in counts.items() if one.value is not None}
    found: dict[str, Any] = {
        field: round(known[event].value or 0) for event, field in FIELDS.items() if event in known
    }
    if "cycles" in known:
        found["cycles_by_pmu"] = {
            pmu: round(value) for pmu, value in known["cycles"].by_pmu.items()
        }
    found["slots"] = slots({name: one.value or 0.0 for name, one in known.items()})
    if known:
        found["running_share"] = min(one.running_share for one in known.values())
    found["unavailable"] = {
        event: one.reason for event, one in counts.items() if one.reason is not None
    }
    return found


def slots(counts: Mapping[str, float]) -> dict[str, float]:
    """Shares of all slots; empty where not every event of level 1 was counted.

    The events of level 1 add up to all slots. What is bound by the back end is bound by
    memory or, the rest, by the core (Yasin, A Top-Down Method for Performance Analysis
    and Counters Architecture, ISPASS 2014).

    >>> slots({"topdown-retiring": 50, "topdown-bad-spec": 5, "topdown-fe-bound": 5,
    ...        "topdown-be-bound": 40, "topdown-mem-bound": 30})["core_bound"]
    0.1
    """
    whole = sum(counts.get(event, 0.0) for event in LEVEL_1)
    if not whole or any(event not in counts for event in LEVEL_1):
        return {}
    found = {name: counts[event] / whole for event, name in LEVEL_1.items()}
    if MEMORY_BOUND in counts:
        found["memory_bound"] = counts[MEMORY_BOUND] / whole
        found["core_bound"] = max(0.0, counts["topdown-be-bound"] - counts[MEMORY_BOUND]) / whole
    return found
