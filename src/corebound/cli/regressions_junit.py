"""What `corebound regressions` tells as JUnit XML: a test case a series."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from corebound import foreign
from corebound.cli.regressions_words import (
    Told,
    came_in,
    commands,
    link_of,
    named,
    recovered,
    size,
    standing,
)
from corebound.stats.regressions_judged import Judged


def junit(told: Told) -> str:
    """A test suite: a failure is a new regression, an error a series without figures or analysis.

    What is only suspected is said in the case's output, and fails nothing.
    """
    of_series: dict[str, list[Judged]] = {}
    for one in told.judged:
        of_series.setdefault(one.change.series.id, []).append(one)
    failing = {one.series.id: one for one in told.failing}
    unknown = {one.series.id: one.reason for one in told.not_analysed}
    failed = {one.change.series.id for one in told.alarms}
    suite = ET.Element(
        "testsuite",
        name="corebound regressions",
        tests=str(len(told.series)),
        failures=str(len(failed)),
        errors=str(len(failing) + len(unknown)),
        skipped="0",
    )
    for series in told.series:
        where = series.host if series.project is None else f"{series.project}.{series.host}"
        case = ET.SubElement(
            suite,
            "testcase",
            classname=foreign.xml(f"{where}.{series.scenario}"),
            name=foreign.xml(series.cell or "default"),
        )
        mine = of_series.get(series.id, [])
        alarms = [one for one in mine if one.alarm]
        if alarms:
            what = foreign.xml("; ".join(size(one.change) for one in alarms))
            failure = ET.SubElement(case, "failure", message=what, type="regression")
            failure.text = foreign.xml("\n\n".join(_said(one, told) for one in alarms))
        if (ended := failing.get(series.id)) is not None:
            why = ended.since.missing or "not told why"
            what = foreign.xml(f"no figure since {ended.since.at}: {why}")
            ET.SubElement(case, "error", message=what, type="no figure")
        if series.id in unknown:
            what = foreign.xml(f"not analysed: {unknown[series.id]}")
            ET.SubElement(case, "error", message=what, type="not analysed")
        quiet = [one for one in mine if one.is_open and not one.alarm]
        if quiet:
            ET.SubElement(case, "system-out").text = foreign.xml(
                "\n\n".join(_said(one, told) for one in quiet)
            )
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode")


def _said(one: Judged, told: Told) -> str:
    change = one.change
    lines = (
        f"{one.id} {named(change.series)}",
        size(change),
        came_in(change),
        recovered(change),
        standing(one),
        told.beside_of(one).noise,
        link_of(change.series, told.site),
        *commands(one, told),
    )
    return "\n".join(line for line in lines if line)
