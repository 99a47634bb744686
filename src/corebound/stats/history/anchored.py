"""Anchored histories: ratios to one pinned build, measured on whatever machine came each night.

The ratio hardly depends on the machine, so all nights are one series. Where the data show that a
CPU model has a level of its own, it has one (a random effect). A change that only some models show
is reported for those models, from their own points.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from corebound.records.history import (
    ANCHOR_KEY,
    CHAINED,
    MACHINE_KEY,
    EnvironmentKey,
    HistoryPoints,
    Series,
    without_machine,
)
from corebound.stats.between_hosts import between_variance
from corebound.stats.history.change_point import ChangePoint, HistoryArrays, segments_of
from corebound.stats.history.weighted_shifts import error_variances, successive_spread
from corebound.stats.intervals import NORMAL_REACH, Array

# A model's level on either side of a change takes at least this many nights.
_LEAST_NIGHTS = 2
# Older nights say little about a change.
_NIGHTS_BESIDE = 30
_HALF = 0.5
# Nothing is more exact than this, as a logarithm.
_LEAST_ERROR = 1e-6

# The commit in an anchor's name.
_HASH = re.compile(r"\w+")

_Evidence: TypeAlias = dict[str, tuple[float, float]]


class Models(Struct, frozen=True, kw_only=True):
    """Which CPU models show a change, and which were measured and do not."""

    with_change: tuple[str, ...]
    without: tuple[str, ...]


def pooled_arrays(series: Series, history: HistoryArrays) -> HistoryArrays:
    """The nights of all CPU models as one segment, less the level that each model has of its own.

    Args:
        series: An anchored series.
        history: Its points, with a segment for each model.
    """
    keys = series.points.environment_keys
    common = [without_machine(key) for key in keys]
    borders = [at for at in range(1, len(common)) if common[at] != common[at - 1]]
    segments = segments_of(common, borders)
    models = _models(keys)
    logs = history.logs.copy()
    for places in segments:
        present = places[~np.isnan(logs[places])]
        logs[present] -= _own_levels(
            logs[present], history.errors[present], [models[at] for at in present]
        )
    return replace(history, logs=logs, segments=segments)


def models_of(series: Series, history: HistoryArrays, change_point: ChangePoint) -> Models:
    """Which CPU models show a change: each is judged by its own nights before and after it.

    A model shows it if it moved by more than half of its size and its interval excludes none. It
    does not if its interval excludes half of the size.
    """
    side = 1 if change_point.direction == "up" else -1
    half = _HALF * abs(math.log(change_point.ratio))
    shown, without = [], []
    for model, (shift, error) in _shifts(series, history, change_point).items():
        if side * shift > max(half, NORMAL_REACH * error):
            shown.append(model)
        elif side * shift + NORMAL_REACH * error < half:
            without.append(model)
    return Models(with_change=tuple(shown), without=tuple(without))


def _shifts(series: Series, history: HistoryArrays, change_point: ChangePoint) -> _Evidence:
    """How far each model's level moved at a change, and the standard error of that."""
    models = _models(series.points.environment_keys)
    good, bad = change_point.last_good, change_point.first_bad
    shifts: _Evidence = {}
    for model in dict.fromkeys(models):
        own = np.array([at for at, name in enumerate(models) if name == model])
        own = own[~np.isnan(history.logs[own])]
        sides = own[own <= good][-_NIGHTS_BESIDE:], own[own >= bad][:_NIGHTS_BESIDE]
        if min(map(len, sides)) < _LEAST_NIGHTS:
            continue
        (before, before_error), (after, after_error) = (
            _level(history.logs[places], history.errors[places]) for places in sides
        )
        shifts[model] = after - before, math.hypot(before_error, after_error)
    return shifts


def _level(logs: Array, errors: Array) -> tuple[float, float]:
    """The mean of some nights, each weighted by its precision, and its standard error.

    Source: the random-effects mean of DerSimonian & Laird (1986), with the variance between
    nights of Paule & Mandel (1982).
    """
    variances = error_variances(logs, errors)
    weights = 1 / (between_variance(logs, variances) + variances)
    return float(np.average(logs, weights=weights)), 1 / math.sqrt(float(weights.sum()))


def _own_levels(logs: Array, errors: Array, models: Sequence[str]) -> Array:
    """For each night, the level that its CPU model has of its own; 0 where the data show none.

    Only nights in a row are compared, by weighted least squares, so that a change in time moves one
    difference and not all. Then levels are shrunk towards 0 by what chance explains.

    Source: best linear unbiased prediction of a random effect, Robinson, "That BLUP is a good
    thing", Statistical Science 6 (1991); variance between models, Paule & Mandel (1982).
    """
    names = [*dict.fromkeys(models)]
    if len(names) < 2:
        return np.zeros_like(logs)
    number = np.array([names.index(model) for model in models])
    variances = error_variances(logs, errors)
    pairs = np.flatnonzero(number[1:] != number[:-1])
    design = np.zeros((pairs.size, len(names)))
    rows = np.arange(pairs.size)
    design[rows, number[pairs + 1]] = 1
    design[rows, number[pairs]] = -1
    weights = 1 / (variances[pairs] + variances[pairs + 1])
    differences = logs[pairs + 1] - logs[pairs]
    scaled = design * weights[:, None]
    # Levels sum up to none; the pseudo-inverse takes the one with the least squares.
    levels = np.linalg.pinv(scaled.T @ design) @ (scaled.T @ differences)
    residuals = logs - levels[number]
    noise = max(successive_spread(residuals), _LEAST_ERROR)
    own = noise**2 / np.bincount(number)
    between = between_variance(levels, own)
    shrunk = levels * between / (between + own)
    return np.asarray(shrunk[number])


def _models(keys: Sequence[EnvironmentKey]) -> list[str]:
    return [dict(key).get(MACHINE_KEY, "") for key in keys]


def chained(series: Series, history: HistoryArrays) -> Series:
    """The series relative to its latest anchor, where nights measured two anchors in turns.

    The ratio of both anchors is the mean over the nights that measured both, see `_level`. Earlier
    points are multiplied by it, and their `anchor` says how uncertain that makes them together.
    Without such nights nothing relates the anchors, and a new segment begins. An anchor has
    its latest name: a tag may come later than the nights.
    """
    named = [dict(key)[ANCHOR_KEY] for key in series.points.environment_keys]
    hashes = [_HASH.findall(name)[-1] for name in named]
    latest_names = dict(zip(hashes, named, strict=True))
    names = [latest_names[each] for each in hashes]
    points = [*series.points]
    if names != named:
        points = [
            replace(point, environment_key=_with_anchor(point.environment_key, name))
            for point, name in zip(points, names, strict=True)
        ]
        series = replace(series, points=HistoryPoints.of(points))
    anchors = [*dict.fromkeys(reversed(names))]
    if len(anchors) < 2:
        return series
    by_run = {
        anchor: {point.run: at for at, point in enumerate(points) if names[at] == anchor}
        for anchor in anchors
    }
    kept = [point for at, point in enumerate(points) if names[at] == anchors[0]]
    shift, variance, latest = 0.0, 0.0, anchors[0]
    for new, old in itertools.pairwise(anchors):
        both = [(by_run[old][run], by_run[new][run]) for run in by_run[old] if run in by_run[new]]
        first, second = np.array(both, dtype=np.int64).reshape(-1, 2).T
        ratios = history.logs[first] - history.logs[second]
        own = np.hypot(history.errors[first], history.errors[second])
        # A night of unknown error would seem to be exact.
        measured = ~np.isnan(ratios) & (own > 0)
        if measured.any():
            link, error = _level(ratios[measured], own[measured])
            shift, variance = shift + link, variance + error**2
            label = f"{latest}{CHAINED}{old} ±{NORMAL_REACH * math.sqrt(variance):.1%}"
        else:
            shift, variance, latest, label = 0.0, 0.0, old, old
        alone = [at for run, at in by_run[old].items() if run not in by_run[new]]
        kept += HistoryPoints.of(
            replace(points[at], environment_key=_with_anchor(points[at].environment_key, label))
            for at in alone
        ).scaled(math.exp(-shift))
    kept.sort(key=lambda point: (point.at, point.run or ""))
    return replace(series, points=HistoryPoints.of(kept))


def _with_anchor(key: EnvironmentKey, anchor: str) -> EnvironmentKey:
    return tuple((name, anchor if name == ANCHOR_KEY else which) for name, which in key)
