"""Which detectors have to vote: every rule on the same series, beside Otava and asv.

Series are simulated nights, histories of asv with an added step, and two public sets with labels.
"""

from __future__ import annotations

import ast
import importlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
from msgspec.structs import replace

from benchmarks.simulation import recorded
from benchmarks.simulation.histories import (
    EDGE,
    NEAR,
    NIGHTS,
    NOISES,
    STEP,
    Array,
    Draw,
    find_steps,
)
from corebound.stats.history import change_point_search, detectors
from corebound.stats.history.detection import THRESHOLD
from corebound.stats.history.shift_tests import inflation, t_p_value

# (likelihood, t, no veto of the likelihood) -> whether a cut is accepted.
_RULES: Mapping[str, Callable[[bool, bool, bool], bool]] = {
    "likelihood or t, veto": lambda like, t, ok: ok and (like or t),
    "likelihood or t": lambda like, t, _: like or t,
    "likelihood": lambda like, _t, _ok: like,
    "t": lambda _like, t, _ok: t,
    "likelihood and t": lambda like, t, _: like and t,
}
_OTAVA, _ASV = "Otava", "asv"
# A step is looked for this many nights long.
_PATIENCE = 30
# As in van den Burg & Williams, "An evaluation of change point detection algorithms" (2020).
_LABEL_MARGIN = 5
# The changes of TigerBeetle's series that the comment beside it shows.
_TIGERBEETLE = (16, 71, 97)

Places = tuple[int, ...]
_decide = detectors.decide


def places_of(rule: str, logs: Array) -> Places:
    """Where a rule finds changes of 2 % or more: first indices after them."""
    if rule == _OTAVA:
        # It is not among the dependencies.
        found, _ = importlib.import_module("otava.analysis").compute_change_points(
            np.exp(logs).tolist(), window_len=50, max_pvalue=0.001, min_magnitude=THRESHOLD
        )
        return tuple(sorted(point.index for point in found))
    if rule == _ASV:
        from asv.step_detect import detect_steps  # noqa: PLC0415  # optional

        steps = detect_steps(np.exp(logs).tolist(), None)
        return tuple(
            step[0]
            for step, before in zip(steps[1:], steps, strict=False)
            if abs(math.log(step[2] / before[2])) >= math.log1p(THRESHOLD)
        )

    def decide(stretch: detectors.CutContext) -> detectors.CutDecision:
        decision = _decide(stretch)
        if decision is detectors.REFUSED:
            return decision
        sides, rho = stretch.sides, stretch.rho
        gain = sides.likelihood / inflation(sides.points, rho)
        t_level = t_p_value(*sides.trimmed, rho=rho, own_error=stretch.own_error)
        like, t = gain >= detectors.LIKELIHOOD_GAIN, t_level <= detectors.T_LEVEL
        return replace(decision, elected=_RULES[rule](like, t, gain >= detectors.LEAST_GAIN))

    with ExitStack() as patched:
        patched.enter_context(patch.object(change_point_search, "decide", decide))
        if rule in {"t", "likelihood or t"}:
            anything = patch.object(detectors.CutSides, "may_pass", lambda _: True)
            patched.enter_context(anything)
        return tuple(step.at for step in find_steps(logs))


def _found(places: Places, at: int) -> bool:
    return any(abs(place - at) <= NEAR for place in places)


def _planted(index: int, *, rule: str, draw: Draw, seed: int) -> tuple[bool, bool, bool, float]:
    """An alarm without a step; the step found; another one reported; nights until found."""
    rng = np.random.default_rng((seed, index))
    logs = draw(rng, NIGHTS + _PATIENCE)
    at = int(rng.integers(EDGE, NIGHTS - EDGE + 1))
    alarm = bool(places_of(rule, logs[:NIGHTS]))
    stepped = logs.copy()
    stepped[at:] += STEP
    places = places_of(rule, stepped[:NIGHTS])
    late = logs.copy()
    late[NIGHTS:] += STEP
    delay = next(
        (
            nights
            for nights in range(2, _PATIENCE + 1)
            if _found(places_of(rule, late[: NIGHTS + nights]), NIGHTS)
        ),
        math.inf,
    )
    return alarm, _found(places, at), len(places) > _found(places, at), delay


def _added(logs: Array, *, rule: str) -> tuple[bool, bool]:
    """Whether anything is found as measured, and a step of 5 % added in the middle third."""
    at = logs.size // 3 + int(abs(float(logs.sum())) * 1e6) % (logs.size // 3)
    stepped = logs.copy()
    stepped[at:] += STEP
    return bool(places_of(rule, logs)), _found(places_of(rule, stepped), at)


def _labelled(series: tuple[Array, Sequence[Sequence[int]]], *, rule: str) -> tuple[float, float]:
    """Recall, mean over the annotators, and precision, by the union of their labels."""
    logs, labels = series
    # As there, the first point is a change point for everyone, so that none is a division by 0.
    found = {0, *places_of(rule, logs)}
    sets = [{0, *own} for own in labels]
    recall = np.mean([_matched(own, found) / len(own) for own in sets])
    return float(recall), _matched(set().union(*sets), found) / len(found)


def _matched(truth: Iterable[int], found: Iterable[int]) -> int:
    """How many labels have a change point of their own within the margin."""
    left, matched = sorted(found), 0
    for label in sorted(truth):
        near = [place for place in left if abs(place - label) <= _LABEL_MARGIN]
        if near:
            left.remove(min(near, key=lambda place: abs(place - label)))
            matched += 1
    return matched


def _tcpd(folder: Path) -> list[tuple[Array, Sequence[Sequence[int]]]]:
    """The series of the Turing Change Point Dataset that have one dimension, all above 0."""
    labels = json.loads((folder / "annotations.json").read_bytes())
    result: list[tuple[Array, Sequence[Sequence[int]]]] = []
    for path in sorted(folder.glob("datasets/*/*.json")):
        stored = json.loads(path.read_bytes())
        (raw, *others) = (each["raw"] for each in stored["series"])
        values = np.array([math.nan if value is None else value for value in raw], dtype=np.float64)
        if not others and np.all(values > 0) and stored["name"] in labels:
            result.append((np.log(values), list(labels[stored["name"]].values())))
    return result


def _tigerbeetle(folder: Path) -> Array:
    tree = ast.parse((folder / "tests" / "tigerbeetle_test.py").read_text())
    numbers = next(
        node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value
    )
    return np.log(np.array(ast.literal_eval(numbers), dtype=np.float64))


def voted(
    seed: int, trials: int, *, tcpd: Path | None, otava: Path | None, asv: Sequence[Path]
) -> None:
    """Print what every rule finds, and what it reports falsely."""
    rules = [*_RULES, *((_OTAVA, _ASV) if otava else ())]
    labelled = _tcpd(tcpd) if tcpd else []
    tiger = _tigerbeetle(otava) if otava else None
    rng = np.random.default_rng(seed)
    real = []
    for path in asv:
        series = recorded.series(path)
        real.append([series[at] for at in rng.permutation(len(series))[:trials]])
    print(f"{trials} series of each kind of noise: with an alarm / a step of 5 % found / median")
    print(f"nights until then. asv: {[len(some) for some in real]} series, as measured / added")
    print(f"step found. TCPD: recall / precision of {len(labelled)} series. TigerBeetle: found of")
    print("three labelled changes + others.\n")
    for rule in rules:
        with ProcessPoolExecutor() as pool:
            print(rule)
            for name, draw in NOISES:
                work = partial(_planted, rule=rule, draw=draw, seed=seed)
                alarms, found, others, delays = zip(*pool.map(work, range(trials)), strict=True)
                delay = sorted(delays)
                print(
                    f"  {name:<36}{np.mean(alarms):>7.1%}{np.mean(found):>8.1%}"
                    f"{np.mean(others):>8.1%}{delay[trials // 2]:>5.0f}"
                    f"{delay[math.ceil(0.95 * trials) - 1]:>5.0f}"
                )
            for path, some in zip(asv, real, strict=True):
                before, after = zip(*pool.map(partial(_added, rule=rule), some), strict=True)
                print(f"  {path.name:<36}{np.mean(before):>7.1%}{np.mean(after):>8.1%}")
            if labelled:
                recall, precision = np.mean(
                    [*pool.map(partial(_labelled, rule=rule), labelled)], axis=0
                )
                print(f"  {'TCPD':<36}{recall:>7.1%}{precision:>8.1%}")
            if tiger is not None:
                (places,) = pool.map(partial(places_of, rule), [tiger])
                hits = [at for at in _TIGERBEETLE if _found(places, at)]
                print(
                    f"  {'TigerBeetle':<36}{len(hits):>7}{len(places) - len(hits):>8}", flush=True
                )
