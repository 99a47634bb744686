"""What of the traffic to a server does not go together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from corebound.model.catalogue import BUILT_IN
from corebound.model.measure import Measure, ProfileName, measured
from corebound.model.scenario import Scenario
from corebound.planning.expand import given, under
from corebound.planning.points import Setting
from corebound.planning.servers import TAKES
from corebound.planning.tree import Flaw, Path

_PROFILES: tuple[ProfileName | None, ...] = (None, "quick", "nightly")


def traffic(scenario: Scenario, doubtful: frozenset[str]) -> Iterator[Flaw]:
    """What is wrong with the traffic of each cell, with each profile; nothing if it is no server.

    Args:
        scenario: The scenario.
        doubtful: Keys that other faults leave unknown; nothing is judged by them.
    """
    workload = scenario.workload
    built_in = BUILT_IN.get(workload) if isinstance(workload, str) else None
    if built_in is None or not built_in.serves or doubtful & {"workload", "parameters"}:
        return
    is_judged = bool(doubtful & {"iterations", "timeout_s"})
    for profile in _PROFILES:
        changed, points = under(scenario, profile)
        section: Path = ("measure",) if profile is None else ("profiles", profile)
        unmeasurable: list[Flaw] = []
        for point in points:
            found = given(point, changed, scenario, profile)
            for name in built_in.required:
                if name not in found:
                    what = f"`{workload}` needs `{name}`."
                    yield ("parameters",), what, f"Write `{name}:` among the parameters."
            yield from _together(found)
            if not is_judged:
                unmeasurable += _measured(found, measured(scenario, profile), section)
        yield from unmeasurable
        # A profile that changes nothing there would only repeat it.
        is_judged = is_judged or bool(unmeasurable)


def _together(found: Mapping[str, Setting]) -> Iterator[Flaw]:
    """Parameters that the shape of the traffic needs, or has no use for."""
    shape = found["traffic"].text if "traffic" in found else "closed"
    for name, shapes in TAKES.items():
        one = found.get(name)
        if one is None and shape in shapes:
            what = f"`traffic: {shape}` needs `{name}`."
            yield ("parameters",), what, f"Write `{name}:` among the parameters."
        elif one is not None and shape not in shapes:
            what = f"`{name}` means nothing to `traffic: {shape}`."
            yield one.path, what, "Remove it, or take that cell out with `exclude`."
    client = found.get("client")
    if client is not None and client.value == "ab" and shape != "closed":
        what = f"`client: ab` cannot send `traffic: {shape}`."
        yield client.path, what, "Write `client: corebound`, or `traffic: closed`."


def _measured(found: Mapping[str, Setting], measure: Measure, section: Path) -> Iterator[Flaw]:
    """What does not go together with `measure`, as a profile's section of the file changes it."""
    query, rate = found.get("query"), found.get("rate")
    if (
        query is not None
        and type(query.value) is int
        and query.value > 0
        and (measure.iterations % query.value)
    ):
        what = f"{measure.iterations} requests do not make whole queries of {query.text}."
        yield (*section, "iterations"), what, f"Write a multiple of {query.text}."
    # Multiplied, not divided: a rate may be so small that the quotient is infinite.
    if (
        rate is not None
        and type(rate.value) in {int, float}
        and (0 < rate.value * measure.timeout_s < measure.iterations)
    ):
        what = (
            f"{measure.iterations} requests at {rate.text} a second do not end"
            f" before the deadline of {measure.timeout_s:g} s."
        )
        yield rate.path, what, "Raise `rate` or `timeout_s`, or lower `iterations`."
