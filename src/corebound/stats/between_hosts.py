"""What several hosts say together: the estimate of a class, its spread, outliers, and differences.

Every value is the natural logarithm of one host's ratio or time, with the variance of its error.
Hosts of a class differ by more than that error: each has a value of its own, drawn from the
values that hosts of its class have (a random effect).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from corebound.stats.distributions import (
    chi_squared_upper_quantile,
    f_above,
    student_probabilities,
)
from corebound.stats.intervals import CONFIDENCE, Array, Interval, log_interval
from corebound.stats.shared_variance import mixture_reach, share_variances

# With fewer hosts nobody can say which of them is the outlier.
LEAST_HOSTS = 4
# The probability that equal classes of a fleet are called different.
FLEET_ALPHA = 0.01
# The probability that a fleet without outliers names any: an outlier is a machine that somebody
# goes and looks at. Small classes hardly show how heavy the tails are, and then it is more.
OUTLIER_ALPHA = 0.01

# Few hosts often seem to differ by a quarter more than those of other classes do, and at so small
# an error probability their own spread alone could never show an outlier.
_KEEPS_OWN_FACTOR = 3.0
# Degrees of freedom of the hosts' distances: 3 are tails so heavy that the variance hardly exists,
# a thousand are normal. Few hosts hardly show which; so light tails are a little more likely.
_TAILS = np.array([3.0, 4.0, 6.0, 10.0, 20.0, 1000.0])
_TAIL_WEIGHTS = np.array([1.0, 1.0, 2.0, 2.0, 2.0, 2.0])
_SCALES = np.exp(np.linspace(-0.5, 0.5, 11))
_OUTLIER_SHARES = np.array([0.0, 0.03, 0.1])
# In standard errors. Outliers are as likely between any two of the last edges, and beyond: heavy
# tails become rarer there.
_EDGES = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 4.0, 7.0])
_OUTLIERS = np.array([0, 0, 0, 0, 0, 1 / 3, 1 / 3, 1 / 3])
_LEAST_FREEDOM = 1.0
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
        log: Its value less the median of the class, both logarithms.
        limit: Beyond this distance it is an outlier; None in a class with too few hosts.
    """

    log: float
    limit: float | None

    @property
    def is_outlier(self) -> bool:
        """Whether it is further from its class than chance explains, among all hosts tested."""
        return self.limit is not None and abs(self.log) > self.limit


def deviations(
    groups: Sequence[Sequence[HostValue]], *, alpha: float = OUTLIER_ALPHA
) -> tuple[tuple[Deviation, ...], ...]:
    """Find the hosts that are far from the others of their class.

    Median and Qn say where the hosts of a class are and how much they differ; up to half of them
    may be outliers without moving either much. Few hosts hardly show how much they differ, so
    the groups share what they show, see `share_variances`.

    Args:
        groups: For each class and configuration, the values of its hosts.
        alpha: The probability of any outlier in a fleet that has none, in (0, 1).

    Returns:
        For each group, the deviation of each host in the order given.

    Source: Qn, Rousseeuw & Croux, "Alternatives to the median absolute deviation", JASA 88
    (1993); the limit is that of Student's t with Bonferroni's correction for all hosts of all
    groups. How heavy its tails are is learned from all hosts, see `_tail_factors`.
    """
    logs = [np.array([value.log for value in group]) for group in groups]
    tested = [index for index, group in enumerate(logs) if len(group) >= LEAST_HOSTS]
    hosts = sum(len(groups[index]) for index in tested)
    limits: dict[int, Array] = {}
    if tested:
        confidence = 1 - alpha / hosts
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
            scales.append(np.sqrt(error**2 * (1 + _MEDIAN_VARIANCE / size) + excess))
        distances = [
            _in_errors(np.abs(logs[index] - np.median(logs[index])), scale)
            for index, scale in zip(tested, scales, strict=True)
        ]
        factors = _tail_factors(distances, shared.freedoms, alpha=alpha / hosts)
        for index, factor, scale in zip(tested, factors, scales, strict=True):
            limits[index] = factor * scale
    return tuple(
        tuple(
            Deviation(
                log=float(log - np.median(group)),
                limit=float(limits[index][host]) if index in limits else None,
            )
            for host, log in enumerate(group)
        )
        for index, group in enumerate(logs)
    )


def _in_errors(distances: Array, errors: Array) -> Array:
    """Distances in standard errors; equal values have no error, and then any other is far."""
    beyond = np.where(distances > 0, math.inf, 0.0)
    result: Array = np.divide(distances, errors, where=errors > 0, out=beyond)
    return result


def _tail_factors(distances: Sequence[Array], freedoms: Array, *, alpha: float) -> Array:
    """How many standard errors from its class a host must be, for each group.

    In some fleets many hosts differ by more than normal values do, and that is no reason to look
    at one of them. So the distances are those of Student's t, of unknown degrees of freedom and
    scale, which are averaged over, weighted by how well they explain the distances seen. Up to a
    tenth of the hosts may be outliers, at any distance beyond 2.5 standard errors, so these do not
    hide themselves; beyond 7 only their number counts.

    Args:
        distances: (n,) distances of the hosts of each group from its median, in standard errors.
        freedoms: (k,) degrees of freedom of each group's standard error.
        alpha: The probability that one host without a difference exceeds the factor.

    Source: a robust model of errors with heavy tails, Lange, Little & Taylor, "Robust statistical
    modeling using the t distribution", JASA 84 (1989).
    """
    # Groups with as many degrees of freedom share what follows; axes: group, tail, scale, edge.
    rounded = np.maximum(np.round(freedoms, 1), _LEAST_FREEDOM)
    groups, member = np.unique(rounded, return_inverse=True)
    total = 1 / (1 / groups[:, None, None, None] + 1 / _TAILS[:, None, None])
    scaled = _EDGES / _SCALES[:, None]
    outside = 2 * student_probabilities(*np.broadcast_arrays(total, -scaled))
    inside = -np.diff(outside, prepend=1.0, append=0.0, axis=-1)
    seen = np.array(
        [
            np.histogram(
                np.concatenate([distances[at] for at in np.flatnonzero(member == group).tolist()]),
                (0.0, *_EDGES, math.inf),
            )[0]
            for group in range(len(groups))
        ]
    )
    # A share of the hosts may be outliers.
    with_outliers = inside[..., None] * (1 - _OUTLIER_SHARES) + _OUTLIERS[:, None] * _OUTLIER_SHARES
    logs = np.log(np.maximum(with_outliers, np.finfo(float).tiny))
    likelihood = (seen[:, None, None, :, None] * logs).sum(axis=(0, -2))
    weights = np.exp(likelihood - likelihood.max()) * _TAIL_WEIGHTS[:, None, None]
    weights = weights.sum(axis=-1) / weights.sum()
    factors = mixture_reach(
        np.broadcast_to(_SCALES, (len(groups), _TAILS.size, _SCALES.size)),
        np.broadcast_to(total[..., 0], (len(groups), _TAILS.size, _SCALES.size)),
        weights,
        alpha,
    )
    result: Array = factors[member]
    return result


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
