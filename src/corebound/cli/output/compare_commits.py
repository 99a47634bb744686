"""The output of `corebound compare-commits`: text, Markdown, JSON and JUnit XML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

from msgspec import Struct

from corebound import text, units
from corebound.analysis.commit_comparison import CellAtCommits, CellVerdict
from corebound.analysis.serialize import commit_pair_document
from corebound.analysis.wording import NO_ESTIMATE
from corebound.cli.output.json import indented
from corebound.cli.output.run import SIGNS
from corebound.runner import Ending
from corebound.stats.comparison import Comparison
from corebound.stats.intervals import is_usable
from corebound.workflow.comparison_sides import Side, Sides

Format = Literal["text", "md", "json", "junit"]


class CompareCommitsResult(Struct, frozen=True, kw_only=True):
    """The result of a comparison of commits.

    Attributes:
        ends: The two sides.
        judged: Cells in the order of the suite.
        noise: The noise floor of each calibrated scenario, one sentence each.
        records: The file of the launches.
        ending: Why the launches ended.
    """

    ends: Sides
    judged: tuple[CellVerdict, ...]
    noise: tuple[str, ...]
    records: Path
    ending: Ending


def told(what: CompareCommitsResult, form: Format) -> str:
    """Render the result in a format, without a final newline."""
    writers = {"text": _text, "md": _markdown, "json": _json, "junit": _junit}
    return writers[form](what)


def headline(what: CompareCommitsResult) -> str:
    """The result in one line."""
    count = sum(one.verdict is not None for one in what.judged)
    slower = sum(one.is_regression for one in what.judged)
    missing = sum(bool(one.pair.missing) for one in what.judged)
    said = f"{slower or 'None'} of {count} cells slower"
    if not count:
        said = "Nothing could be compared"
    if faster := sum(one.verdict == "faster" for one in what.judged):
        said += f", {faster} faster"
    if undecided := sum(one.verdict == "undecided" for one in what.judged):
        said += f", {undecided} undecided"
    if missing:
        said += f", {missing} without figures"
    return said + (" (the budget ran out)" if what.ending == "out of time" else "") + "."


def _text(what: CompareCommitsResult) -> str:
    ends = what.ends
    lines = [
        f"{ends.what}: {_named(ends.base)}",
        f"{'':{len(ends.what)}}→ {_named(ends.head)}",
        "",
    ]
    rows = [_row(one) for one in what.judged]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    lines += [
        "  ".join(f"{part:<{width}}" for part, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    for reason in _reasons(what):
        lines += ["", *reason.splitlines()]
    lines += ["", headline(what), *_cpu(what), *what.noise, f"Records: {what.records}"]
    return "\n".join(map(text.one_line, lines))


def _row(one: CellVerdict) -> tuple[str, ...]:
    pair = one.pair
    said = f"{SIGNS[one.verdict]} {one.verdict}" if one.verdict else "– no figure"
    return (
        f"{said}{_would_tell(pair)}",
        f"{pair.scenario}[{pair.cell}]",
        _time(pair.base_ns),
        _time(pair.head_ns),
        _slowdown(pair.comparison),
    )


def _would_tell(pair: CellAtCommits) -> str:
    """The number of launches needed for a conclusive verdict, if it can be estimated."""
    needed = pair.comparison.launches_needed if pair.comparison else None
    return "" if needed is None else f", ~{needed} launches"


def _time(value_ns: float | None) -> str:
    return "–" if value_ns is None else units.duration(value_ns)


def _slowdown(compared: Comparison | None) -> str:
    """Time at head divided by time at base, with its interval: the effect of the commit."""
    if compared is None:
        return "–"
    said = f"{1 / compared.speedup_ratio:.3f}× the time"
    if compared.interval is None:
        return said
    if not is_usable(compared.interval.low, compared.interval.high):
        return f"{said} ({NO_ESTIMATE})"
    low, high = 1 / compared.interval.high, 1 / compared.interval.low
    return f"{said} ({low:.3f}–{high:.3f})"


def _named(side: Side) -> str:
    return f"{side.name} {side.title}".rstrip()


def _cpu(what: CompareCommitsResult) -> tuple[str, ...]:
    """Notes where CPU time disagrees with elapsed time; on a busy host, it is more reliable."""
    return tuple(
        f"{one.pair.scenario}[{one.pair.cell}]: CPU time is {one.pair.cpu_ratio:.3f}×, which that"
        " interval does not hold: waiting, or what else ran here, is in the time."
        for one in what.judged
        if one.pair.cpu_differs
    )


def _reasons(what: CompareCommitsResult) -> tuple[str, ...]:
    """The reasons for missing results, each once: a failed build fails for all cells."""
    return tuple(dict.fromkeys(reason for one in what.judged for reason in one.pair.missing))


def _markdown(what: CompareCommitsResult) -> str:
    ends = what.ends
    lines = [
        f"**{headline(what)}**",
        "",
        f"{text.markdown(ends.what)}: "
        + " → ".join(
            f"`{one.name}` {text.markdown(one.title)}".rstrip() for one in (ends.base, ends.head)
        ),
        "",
        "| verdict | cell | base | head | head ÷ base (95 %) |",
        "|---|---|---:|---:|---:|",
    ]
    for one in what.judged:
        verdict, cell, *figures = _row(one)
        bold = f"**{verdict}**" if one.is_regression else verdict
        lines.append(f"| {' | '.join((bold, text.markdown(cell), *figures))} |")
    for reason in _reasons(what):
        fence = "`" * max(3, 1 + max((len(ticks) for ticks in re.findall("`+", reason)), default=0))
        lines += ["", fence, reason, fence]
    for sentence in (*_cpu(what), *what.noise):
        lines += ["", text.markdown(sentence)]
    return "\n".join(lines)


def _json(what: CompareCommitsResult) -> str:
    document = {
        "project": what.ends.what,
        "base": _side(what.ends.base),
        "head": _side(what.ends.head),
        "ending": what.ending,
        "records": str(what.records),
        "regressions": sum(one.is_regression for one in what.judged),
        "noise": what.noise,
        "cells": [commit_pair_document(one) for one in what.judged],
    }
    return indented(document)


def _side(side: Side) -> object:
    """A commit in the form that records use, or the description of another kind of side."""
    return side.commit or {"name": side.name, "title": side.title}


def _junit(what: CompareCommitsResult) -> str:
    suite = ET.Element(
        "testsuite",
        name="corebound compare-commits",
        tests=str(len(what.judged)),
        failures=str(sum(one.is_regression for one in what.judged)),
        errors=str(sum(bool(one.pair.missing) for one in what.judged)),
        skipped="0",
    )
    if what.noise:
        properties = ET.SubElement(suite, "properties")
        for sentence in what.noise:
            ET.SubElement(properties, "property", name="noise", value=text.xml(sentence))
    for one in what.judged:
        suite.append(_case(one))
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode")


def _case(one: CellVerdict) -> ET.Element:
    pair = one.pair
    case = ET.Element("testcase", classname=text.xml(pair.scenario), name=text.xml(pair.cell))
    said = text.xml(_slowdown(pair.comparison))
    if pair.missing:
        reason = text.xml("\n".join(pair.missing))
        first = reason.partition("\n")[0]
        ET.SubElement(case, "error", message=first, type="no figure").text = reason
    elif one.is_regression:
        ET.SubElement(case, "failure", message=said, type="regression").text = said
    else:
        verdict = f"{one.verdict}{_would_tell(pair)}"
        ET.SubElement(case, "system-out").text = f"{verdict}: {said}"
    return case
