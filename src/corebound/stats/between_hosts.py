"""What several hosts say together: the estimate of a class, its spread, outliers, and differences.

Every value is the natural logarithm of one host's ratio or time, with the variance of its error.
Hosts of a class differ by more than that error: each has a value of its own, drawn from the
values that hosts of its class have (a random effect).
"""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from corebound.stats.distributions import (
    chi_squared_upper_quantile,
    f_above,
    student_quantiles,
)
from corebound.stats.intervals import CONFIDENCE, Array, Interval, log_interval
from corebound.stats.shared_variance import share_variances

# With fewer hosts nobody can say which of them is the outlier.
LEAST_HOSTS = 4
# The probability that equal classes of a fleet are called different.
FLEET_ALPHA = 0.01
# The probability that a fleet without outliers names any: an outlier is a machine that somebody
# goes and looks at.
OUTLIER_ALPHA = 0.01

# Few hosts often seem to differ by a quarter more than those of other classes do, and at so small
# an error probability their own spread alone could never show an outlier.
_KEEPS_OWN_FACTOR = 3.0
# Heavy tails: the share of the hosts that shows them, at least so many hosts; and what is known of
# them before, as if so many more hosts had shown the tail index of normal values at this distance.
_TAIL_SHARE, _LEAST_TAIL = 0.2, 5
_PRIOR_HOSTS, _PRIOR_INDEX = 10, 8.0
# More hosts than this share are no outliers.
_MOST_OUTLIERS = 0.25
# Logarithms of distances that are 0 or have no error end here.
_LEAST_SCORE, _MOST_SCORE = 1e-12, 1e12
# Constants of Qn: for normal values, and for few of them (Croux & Rousseeuw 1992).
_QN = 2.2219
_QN_OF_FEW = {2: 0.399, 3: 0.994, 4: 0.512, 5: 0.844, 6: 0.611, 7: 0.857, 8: 0.669, 9: 0.872}
# The variance of the median of normal values is this over their number, times theirs.
_MEDIAN_VARIANCE = math.pi / 2
# Ends of the search coincide before this.
_HALVINGS = 200


class HostValue(Struct, frozen=True, kw_only=True):
    """One host's value: a natural logarithm and the variance of its error, above 0."""

    log: float
    variance: float


class ClassEstimate(Struct, frozen=True, kw_only=True):
    """The typical value of a class of hosts.

    Attributes:
        hosts: The number of hosts it is estimated from.
        log: The mean of the hosts' logarithms, weighted.
        error: Its standard error, with `freedom` degrees of freedom; None for one host.
        spread: The standard deviation between hosts, of logarithms, beyond the errors of their
            own values; None for one host.
        spread_interval: The 95 % interval of `spread`; its high end may be infinite.
    """

    hosts: int
    log: float
    error: float | None
    freedom: int
    spread: float | None
    spread_interval: tuple[float, float] | None

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval of the class's ratio; None for one host."""
        if self.error is None:
            return None
        return log_interval(self.log, standard_error=self.error, freedom=self.freedom)


def estimate_class(values: Sequence[HostValue]) -> ClassEstimate:
    """Estimate the typical value of a class, and how much its hosts differ.

    Args:
        values: One for each host, at least one.

    Returns:
        The random-effects estimate. The interval uses the larger of the error that the weights
        give and the one that the hosts' scatter gives, so that few hosts that agree by chance do
        not narrow it.

    Source: between-host variance, Paule & Mandel, "Consensus values and weighting factors"
    (1982); interval, Hartung & Knapp, Statistics in Medicine 20 (2001), with the correction of
    Röver, Knapp & Friede, BMC Medical Research Methodology 15 (2015); interval of the variance,
    the Q-profile method of Viechtbauer, Statistics in Medicine 26 (2007).
    """
    logs = np.array([value.log for value in values])
    variances = np.array([value.variance for value in values])
    freedom = len(values) - 1
    if not freedom:
        return ClassEstimate(
            hosts=1, log=values[0].log, error=None, freedom=0, spread=None, spread_interval=None
        )
    between = between_variance(logs, variances)
    weights = 1 / (between + variances)
    log = float(np.average(logs, weights=weights))
    scatter = _scatter(logs, variances, between) / freedom
    low, high = (
        math.sqrt(_variance_at(logs, variances, chi_squared_upper_quantile(freedom, tail)))
        for tail in ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
    )
    return ClassEstimate(
        hosts=len(values),
        log=log,
        error=math.sqrt(max(1.0, scatter) / float(weights.sum())),
        freedom=freedom,
        spread=math.sqrt(between),
        spread_interval=(low, high),
    )


def between_variance(logs: Array, variances: Array) -> float:
    """The variance between hosts, beyond the variances of their own values.

    Args:
        logs: (k,) values of at least two hosts.
        variances: (k,) variances of their errors, above 0.

    Source: Paule & Mandel (1982): the variance with which the weighted squares of the deviations
    sum up to their expectation, k - 1; 0 if they are less with none.
    """
    return _variance_at(logs, variances, len(logs) - 1)


def _variance_at(logs: Array, variances: Array, scatter: float) -> float:
    """The variance between hosts at which the scatter has this value; 0 if it is always less."""
    if _scatter(logs, variances, 0.0) <= scatter:
        return 0.0
    # The scatter falls with the variance, and at this one it is below 0 of the degrees of freedom.
    low, high = 0.0, float(np.sum((logs - logs.mean()) ** 2)) / scatter
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if _scatter(logs, variances, middle) > scatter else (low, middle)
    return high


def _scatter(logs: Array, variances: Array, between: float) -> float:
    """The weighted sum of squares of the deviations from the weighted mean (Cochran's Q)."""
    weights = 1 / (between + variances)
    return float(np.sum(weights * (logs - np.average(logs, weights=weights)) ** 2))


class Deviation(Struct, frozen=True, kw_only=True):
    """How far one host is from its class.

    Attributes:
        log: Its value less the median of the others of its class, both logarithms.
        limit: Beyond this distance it is an outlier; None in a class with too few hosts.
    """

    log: float
    limit: float | None

    @property
    def is_outlier(self) -> bool:
        """Whether it is further from its class than chance explains, among all hosts tested."""
        return self.limit is not None and abs(self.log) > self.limit


def deviations(
    groups: Sequence[Sequence[HostValue]],
    hosts: Sequence[Sequence[str]] | None = None,
) -> tuple[tuple[Deviation, ...], ...]:
    """Find the hosts that are far from the others of their class.

    The median of the other hosts of a class and Qn say where they are and how much they differ;
    up to half of them may be outliers without moving either much. Few hosts hardly show how much
    they differ, so the groups share what they show, see `share_variances`.

    Args:
        groups: For each class and configuration, the values of its hosts.
        hosts: The ids of these hosts in the same order; None if each has one value only.

    Returns:
        For each group, the deviation of each host in the order given.

    Source: Qn, Rousseeuw & Croux, "Alternatives to the median absolute deviation", JASA 88
    (1993); the limit is that of Student's t with Bonferroni's correction for all hosts of all
    groups. Where hosts have heavier tails it is larger, see `_tail_factor`.
    """
    logs = [np.array([value.log for value in group]) for group in groups]
    from_others = [_from_others(group) for group in logs]
    tested = [index for index, group in enumerate(logs) if len(group) >= LEAST_HOSTS]
    values = sum(len(groups[index]) for index in tested)
    limits: dict[int, Array] = {}
    if tested:
        confidence = 1 - OUTLIER_ALPHA / values
        sizes = np.array([len(groups[index]) for index in tested])
        shared = share_variances(
            np.array([qn(logs[index]) for index in tested]),
            np.array([_freedom(size) for size in sizes]),
            confidence=confidence,
            keeps_own_factor=_KEEPS_OWN_FACTOR,
        )
        scales: list[Array] = []
        for index, error, size in zip(tested, shared.errors, sizes, strict=True):
            variances = np.array([value.variance for value in groups[index]])
            # A host whose own value is less certain than those of the others may be further away.
            excess = np.maximum(0.0, variances - np.median(variances))
            scales.append(np.sqrt(error**2 * (1 + _MEDIAN_VARIANCE / (size - 1)) + excess))
        reaches = student_quantiles(shared.freedoms, (1 + confidence) / 2)
        names: Sequence[Sequence[object]] = hosts or [
            [(index, at) for at in range(len(group))] for index, group in enumerate(groups)
        ]
        scores: dict[object, float] = {}
        for index, reach, scale in zip(tested, reaches, scales, strict=True):
            own = _in_errors(np.abs(from_others[index]), reach * scale)
            for name, score in zip(names[index], own.tolist(), strict=True):
                scores[name] = max(scores.get(name, 0.0), score)
        factor = _tail_factor(np.array([*scores.values()]))
        for index, reach, scale in zip(tested, reaches, scales, strict=True):
            # A host that is beyond the gap with one value needs none for its others.
            factors = [1.0 if scores[name] > factor else factor for name in names[index]]
            limits[index] = np.array(factors) * reach * scale
    return tuple(
        tuple(
            Deviation(log=float(log), limit=float(limits[index][host]) if index in limits else None)
            for host, log in enumerate(group)
        )
        for index, group in enumerate(from_others)
    )


def _from_others(values: Array) -> Array:
    """Each value less the median of the others; 0 for a single one.

    Of few hosts, half are close to a median that they have moved to themselves: their distances
    from it would seem to have heavy tails.
    """
    size = len(values)
    if size < 2:
        return np.zeros(size)
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    ordered = np.sort(values)
    middle = np.array([(size - 2) // 2, (size - 1) // 2])
    # Without a value, those above it move down by one.
    at = middle + (middle >= ranks[:, None])
    result: Array = values - ordered[at].mean(axis=1)
    return result


def _in_errors(distances: Array, errors: Array) -> Array:
    """Distances in standard errors; equal values have no error, and then any other is far."""
    beyond = np.where(distances > 0, math.inf, 0.0)
    result: Array = np.divide(distances, errors, where=errors > 0, out=beyond)
    return result


def _tail_factor(scores: Array) -> float:
    """How many times its limit a host must be away, given how far all hosts are.

    In some fleets many hosts differ by more than normal values do, and that is no reason to look
    at one of them. If a tail falls as a power of the distance, the logarithm of the ratio of the
    largest distance to the next one has an exponential distribution, whose mean the hosts below
    show. Outliers have a gap below them that is wider than this explains.

    Source: Schluter & Trede, "Identifying multiple outliers in heavy-tailed distributions with an
    application to market crashes", Journal of Empirical Finance 15 (2008), with the index of Hill,
    Annals of Statistics 3 (1975), and a gamma distribution of what is known of it before.
    """
    logs = np.log(np.clip(np.sort(scores)[::-1], _LEAST_SCORE, _MOST_SCORE))
    hosts = len(logs)
    most = min(int(np.count_nonzero(logs > 0)), max(1, math.floor(_MOST_OUTLIERS * hosts)))
    factor = 0.0
    for outliers in range(min(most, hosts - 2) + 1):
        beside = min(max(math.ceil(_TAIL_SHARE * hosts), _LEAST_TAIL), hosts - 1 - outliers)
        tail = logs[outliers : outliers + beside] - logs[outliers + beside]
        known = beside + _PRIOR_HOSTS
        gap = (float(tail.sum()) + _PRIOR_HOSTS / _PRIOR_INDEX) * (
            OUTLIER_ALPHA ** (-1 / known) - 1
        )
        # Without outliers, one would have to be so far beyond all hosts.
        if not outliers or logs[outliers - 1] - logs[outliers] > gap:
            factor = float(logs[outliers]) + gap
    return math.exp(max(0.0, factor))


def qn(values: Array) -> float:
    """The robust standard deviation Qn of at least two values.

    It is a quantile of the distances between all pairs, which half of the values do not move.

    Source: Rousseeuw & Croux (1993), with the corrections for few values of Croux & Rousseeuw,
    "Time-efficient algorithms for two highly robust estimators of scale" (1992).
    """
    size = len(values)
    first, second = np.triu_indices(size, 1)
    half = size // 2 + 1
    rank = half * (half - 1) // 2 - 1
    distance = float(np.partition(np.abs(values[first] - values[second]), rank)[rank])
    large = size / (size + (1.4 if size % 2 else 3.8))
    return _QN * _QN_OF_FEW.get(size, large) * distance


def _freedom(size: int) -> int:
    """Degrees of freedom of Qn's square.

    It is as small as chance makes half of the values alike. The logarithm of Qn's square varies
    as that of a chi-squared value of so many degrees of freedom: 2.0 for 4 or 5 values, 3.2 for
    6, 4.5 for 8, 5.8 for 10, 12.9 for 20 (20,000 simulated samples each).
    """
    return size // 2


class ClassDifference(Struct, frozen=True, kw_only=True):
    """A test whether classes have the same typical value.

    Attributes:
        statistic: Welch's F.
        freedoms: Its degrees of freedom, of the numerator and the denominator.
        p_value: The probability that equal classes differ this much.
    """

    statistic: float
    freedoms: tuple[float, float]
    p_value: float


def compare_classes(estimates: Sequence[ClassEstimate]) -> ClassDifference | None:
    """Test whether classes have the same typical value.

    Args:
        estimates: One for each class. Those of a single host say nothing about their class.

    Returns:
        The test, None if fewer than two classes have several hosts.

    Source: Welch, "On the comparison of several mean values: an alternative approach",
    Biometrika 38 (1951).
    """
    several = [(each.log, each.error, each.freedom) for each in estimates if each.error]
    if len(several) < 2:
        return None
    logs = np.array([log for log, _, _ in several])
    weights = np.array([1 / (error or math.inf) ** 2 for _, error, _ in several])
    freedoms = np.array([float(freedom) for _, _, freedom in several])
    numerator = len(several) - 1
    mean = np.average(logs, weights=weights)
    uncertainty = float(np.sum((1 - weights / weights.sum()) ** 2 / freedoms))
    classes = len(several)
    statistic = float(np.sum(weights * (logs - mean) ** 2)) / numerator
    statistic /= 1 + 2 * (classes - 2) / (classes**2 - 1) * uncertainty
    denominator = (classes**2 - 1) / (3 * uncertainty)
    return ClassDifference(
        statistic=statistic,
        freedoms=(numerator, denominator),
        p_value=f_above(numerator, denominator, statistic),
    )
