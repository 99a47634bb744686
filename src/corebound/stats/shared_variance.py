"""Share the variance between launches among a scenario's comparisons.

With two or three launches, the variance of one comparison is hardly known: Student's factor for
three launches is 4.3. Comparisons of one scenario run the same workload on the same host, so their
variances are alike, and each says something about the others.
"""

import numpy as np
from msgspec import Struct

from corebound.stats import distributions
from corebound.stats.intervals import Array

# How many launches the other comparisons may be worth. Small values mean that the variances of
# the comparisons differ much.
_PRIOR_FREEDOMS = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
# Logarithms of the common variance, relative to the mean logarithm of those seen.
_PRIOR_SCALES = np.linspace(-4.0, 4.0, 33)
# In proportion to 1 / freedom: comparisons are taken to differ unless they are seen to be alike.
# With equal weights fewer intervals hold the truth where one cell is much noisier than the rest.
_PRIOR_WEIGHTS = -np.log(_PRIOR_FREEDOMS)
# A comparison whose error exceeds the median error by this factor keeps its own interval if that
# is wider. Otherwise one that is much noisier than the rest would be judged by their variance:
# of the intervals of one that is five times noisier, 88 % held the truth, and 93 % do so. A factor
# of 1.5 gives 0.5 % less, and 1 makes intervals of equal comparisons 9 % wider.
_KEEPS_OWN_FACTOR = 1.25
# An error of 0 comes from a clock that is coarser than the differences.
_LEAST_SHARE = 1e-9
_LEAST_ERROR = 1e-100
# Priors with less weight, as a share of the error probability, change no interval.
_NEGLIGIBLE = 1e-8
# Halley's method triples the digits with each step, so the step after this one changes none.
_LAST_STEP = 1e-4


class SharedErrors(Struct, frozen=True, kw_only=True):
    """Standard errors after sharing, and their degrees of freedom; arrays of shape (..., k).

    Student's interval from `errors` and `freedoms` has the same half width, at the confidence
    that was asked for, as the posterior distribution.
    """

    errors: Array
    freedoms: Array


def share_variances(
    errors: Array,
    freedoms: Array,
    *,
    confidence: float = 0.95,
    keeps_own_factor: float = _KEEPS_OWN_FACTOR,
    independent: float = 1.0,
) -> SharedErrors:
    """Combine each comparison's variance with those of the others.

    The variances are drawn from a scaled inverse chi-squared distribution, whose scale and
    degrees of freedom are unknown. Both are averaged over, weighted by how well they explain the
    variances seen. So comparisons whose variances differ much keep their own. One that is noisier
    than the others never gets a narrower interval from them.

    Args:
        errors: (..., k) standard errors of k comparisons with the same number of launches.
        freedoms: (..., k) their degrees of freedom, above 0.
        confidence: The confidence of the interval that the result preserves.
        keeps_own_factor: A comparison whose error exceeds the median error by this factor keeps
            its own interval if that is wider.
        independent: How many independent comparisons each is worth, at most 1.

    Returns:
        The new errors and degrees of freedom. With fewer than two comparisons, and where all
        errors are 0, they are those given.

    Source: moderated t, Smyth, "Linear models and empirical Bayes methods for assessing
    differential expression" (2004), section 3, with its prior averaged over instead of
    estimated, because a scenario has few comparisons.
    """
    if errors.shape[-1] < 2 or not np.any(errors > _LEAST_ERROR):
        return SharedErrors(errors=errors, freedoms=freedoms)
    largest = errors.max(axis=-1, keepdims=True)
    variances = np.maximum(errors, np.maximum(_LEAST_SHARE * largest, _LEAST_ERROR)) ** 2
    logs = np.log(variances)
    centre = logs.mean(axis=-1, keepdims=True)
    # Axes of what follows: ..., k, prior freedom, prior scale.
    prior = _PRIOR_FREEDOMS[:, None]
    scales = np.exp(centre[..., None, None] + _PRIOR_SCALES)
    own = freedoms[..., None, None]
    weights = _weights(logs - centre, freedoms, independent)[..., None, :, :]
    posterior = (prior * scales + own * variances[..., None, None]) / (prior + own)
    # Most priors are ruled out by the variances; without them this is several times as fast.
    has_weight = weights > _NEGLIGIBLE * (1 - confidence)
    likely = has_weight.any(axis=tuple(range(has_weight.ndim - 2)))
    total = freedoms + (weights * prior).sum(axis=(-2, -1))
    quantiles = distributions.student_quantiles(total, (1 + confidence) / 2)
    reach = mixture_reach(
        np.sqrt(posterior)[..., likely],
        freedoms[..., None] + np.broadcast_to(prior, likely.shape)[likely],
        weights[..., likely],
        1 - confidence,
        start=np.sqrt((weights * posterior).sum(axis=(-2, -1))) * quantiles,
    )
    shared = reach / quantiles
    is_noisy = errors > keeps_own_factor * np.median(errors, axis=-1, keepdims=True)
    own_reach = errors * distributions.student_quantiles(freedoms, (1 + confidence) / 2)
    keeps_own = is_noisy & (own_reach > reach)
    return SharedErrors(
        errors=np.where(keeps_own, errors, shared),
        freedoms=np.where(keeps_own, freedoms, total),
    )


def _weights(logs: Array, freedoms: Array, independent: float) -> Array:
    """The posterior probability of each prior: (..., freedoms, scales).

    A variance divided by the prior's scale has the F distribution of its own and the prior's
    degrees of freedom.
    """
    first, second = freedoms[..., None, None] / 2, _PRIOR_FREEDOMS[:, None] / 2
    ratio = logs[..., None, None] - _PRIOR_SCALES
    density = (
        first * np.log(first / second)
        + first * ratio
        - (first + second) * np.log1p(first / second * np.exp(ratio))
        - distributions.log_betas(first, second)
    ).sum(axis=-3) * independent + _PRIOR_WEIGHTS[:, None]
    weights = np.exp(density - density.max(axis=(-2, -1), keepdims=True))
    result: Array = weights / weights.sum(axis=(-2, -1), keepdims=True)
    return result


def mixture_reach(
    errors: Array, freedoms: Array, weights: Array, alpha: float, *, start: Array
) -> Array:
    """The half width outside of which the mixture of t distributions has probability `alpha`.

    By Halley's method on logarithms; a step that leaves the bracket halves that instead.

    Args:
        errors: (..., m) of the m distributions, above 0.
        freedoms: (..., m) degrees of freedom.
        weights: (..., m) probabilities.
        alpha: The probability, of both tails together.
        start: (...) a guess of the result.
    """
    factors = 2 * weights * np.exp(-distributions.log_betas(freedoms / 2, 0.5)) / np.sqrt(freedoms)
    narrow, wide = (
        distributions.student_quantile(float(freedom), 1 - alpha / 2)
        for freedom in (freedoms.max(), freedoms.min())
    )
    low, high = np.log(errors.min(axis=-1) * narrow), np.log(errors.max(axis=-1) * wide)
    log, step = np.clip(np.log(start), low, high), np.full(start.shape, np.inf)
    while np.any(np.abs(step) > _LAST_STEP):
        t = np.exp(log)[..., None] / errors
        tails = 2 * (weights * distributions.student_probabilities(freedoms, -t)).sum(axis=-1)
        low, high = np.where(tails > alpha, log, low), np.where(tails > alpha, high, log)
        squares = t * t / freedoms
        parts = factors * t * np.exp(-(freedoms + 1) / 2 * np.log1p(squares))
        # The logarithm of the tails over alpha, and its first two derivatives by `log`.
        value = np.log(tails / alpha)
        slope = -parts.sum(axis=-1) / tails
        curvature = (parts * ((freedoms + 1) * squares / (1 + squares) - 1)).sum(
            axis=-1
        ) / tails - slope**2
        ahead = log - 2 * value * slope / (2 * slope**2 - value * curvature)
        ahead = np.where((low <= ahead) & (ahead <= high), ahead, (low + high) / 2)
        log, step = ahead, ahead - log
    result: Array = np.exp(log)
    return result
