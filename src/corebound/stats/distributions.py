"""Normal, binomial and Student's t probabilities for single values, without importing SciPy.

The tests compare them with SciPy's. Judging a history needs no other distribution, so building
a site of many nightly runs does not import SciPy.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_NORMAL = NormalDist()
# With this many terms a continued fraction is exact to every digit of a float.
_MOST_TERMS = 500
_TINY = 1e-300


def normal_below(x: float) -> float:
    """The probability that a standard normal value is at most x."""
    return math.erfc(-x / math.sqrt(2)) / 2


def normal_quantile(p: float) -> float:
    """The value that a standard normal value does not exceed with probability p, in (0, 1)."""
    return _NORMAL.inv_cdf(p)


def binomial_above(k: int, n: int, p: float) -> float:
    """The probability that more than k of n trials succeed, each with probability p in (0, 1)."""
    if k < 0:
        return 1.0
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1, n + 1))


def student_below(freedom: float, t: float) -> float:
    """The probability that Student's t is at most `t`, for `t` of 0 or less.

    Args:
        freedom: Degrees of freedom, above 0 and not necessarily whole.
        t: At most 0.

    Source: DLMF 8.17.22, the incomplete beta function at freedom / (freedom + t**2).
    """
    square = t * t / freedom
    x = 1 / (1 + square)
    if square == 0 or x == 0:
        return 0.5 if square == 0 else 0.0
    rest = 1 - x if x < 0.5 else square * x
    a, b = freedom / 2, 0.5
    beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    front = math.exp(a * -math.log1p(square) + b * math.log(rest) - beta)
    # The fraction converges fast on one side only; the other side is its complement.
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a / 2
    return (1 - front * _fraction(b, a, rest) / b) / 2


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by the modified Lentz's method."""
    upper, lower = 1.0, 1 / _kept_from_0(1 - (a + b) * x / (a + 1))
    value = lower
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = value
        for term in (even, odd):
            lower = 1 / _kept_from_0(1 + term * lower)
            upper = _kept_from_0(1 + term / upper)
            value *= lower * upper
        if value == before or abs(value / before - 1) < 1e-15:
            break
    return value


def _kept_from_0(x: float) -> float:
    return x if abs(x) > _TINY else _TINY
