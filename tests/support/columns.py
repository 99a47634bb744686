"""Reads the scripts with points, as any program can: JSON, compressed with zlib, as Base64."""

import base64
import itertools
import json
import re
import zlib
from typing import Any

from msgspec import Struct

from corebound.records.history import EnvironmentKey, Series
from corebound.report.history.columns import SharedMoments, points_document, script


class StoredSeries(Struct, frozen=True, kw_only=True):
    """What a script holds of one series; a column has an item for each point.

    Attributes:
        at, run, commit: Of each point.
        environment: Of each point.
        value, low, high: None if there is none.
        missing: Why there is no value.
        pauses: The points before which a result is overdue.
    """

    project: str | None
    scenario: str
    host: str
    cell: str
    unit: str
    at: list[str]
    run: list[str | None]
    commit: list[str | None]
    minutes: list[int | None]
    environment: list[EnvironmentKey]
    value: list[float | None]
    low: list[float | None]
    high: list[float | None]
    missing: list[str | None]
    pauses: list[int]


def document_in(text: str) -> dict[str, Any]:
    """The document in a script."""
    found = re.fullmatch(r'corebound\.keep\("([A-Za-z0-9+/=]*)"\);\n', text)
    assert found is not None
    return dict(json.loads(zlib.decompress(base64.b64decode(found[1]))))


def stored(*all_series: Series) -> list[StoredSeries]:
    """Write these series as scripts, and read them."""
    moments = SharedMoments(all_series)
    points = points_document(all_series, moments, moments_file="p.moments.js")
    return read(script(moments.document()), script(points))


def read(moments: str, points: str) -> list[StoredSeries]:
    """The series in a script of points, with the script of their moments."""
    shared, document = document_in(moments), document_in(points)
    environments = [tuple(map(tuple, pairs)) for pairs in document["environments"]]
    found = []
    for one in document["series"].values():
        places = [*itertools.accumulate(document["columns"][one["column"]])]
        reasons = {at: why for why, indices in one["missing"].items() for at in indices}
        names = ("project", "scenario", "host", "cell", "unit")
        columns: dict[str, Any] = {name: one[name] for name in names} | _numbers(one)
        for name in ("at", "run", "commit", "minutes"):
            columns[name] = [shared[name][place] for place in places]
        for name in ("low", "high"):
            columns[name] = columns[name] or [None] * len(places)
        found.append(
            StoredSeries(
                **columns,
                environment=[
                    environments[index] for index, count in one["environment"] for _ in range(count)
                ],
                missing=[reasons.get(at) for at in range(len(places))],
                pauses=document["pauses"][one["column"]],
            )
        )
    return found


def _numbers(one: dict[str, Any]) -> dict[str, list[float | None]]:
    """Values and ends, from the differences and distances that stand for them."""
    if one["scale"] is None:
        return {name: one[name] for name in ("value", "low", "high")}
    scale, end_scale = one["scale"]
    counts: list[int | None] = []
    total = 0
    for step in one["value"]:
        total += step or 0
        counts.append(None if step is None else total)
    coarse = 10 ** (scale - end_scale)
    ends = {
        name: [
            None if count is None or gap is None
            else _decimal((2 * count + coarse) // (2 * coarse) + sign * gap, end_scale)
            for count, gap in zip(counts, one[name], strict=False)
        ]
        for name, sign in (("low", -1), ("high", 1))
    }  # fmt: skip
    return {"value": [None if it is None else _decimal(it, scale) for it in counts], **ends}


def _decimal(count: int, scale: int) -> float:
    return float(f"{count}e{-scale}")
