"""Correct for multiple comparisons: Holm, and Benjamini and Hochberg."""

from collections.abc import Sequence

from corebound.stats.comparison import Comparison

# The share of findings in a whole suite that may be false, on average.
_FALSE_SHARE = 0.05


def holm(p_values: Sequence[float | None], *, alpha: float = 0.05) -> tuple[bool, ...]:
    """Find the significant tests of a family, bounding the chance of any false finding.

    Args:
        p_values: One for each test; None if there is none, which is never a finding.
        alpha: The probability of any false finding in the family, in (0, 1).

    Returns:
        Whether each test is a finding.

    Raises:
        ValueError: `alpha` lies outside (0, 1).

    Source: Holm, "A simple sequentially rejective multiple test procedure" (1979). Unlike
    Benjamini and Hochberg's, it does not require independence, which comparisons with a
    common baseline lack.

    >>> holm([0.01, 0.04, None, 0.03])
    (True, False, False, False)
    """
    if not 0 < alpha < 1:
        raise ValueError("alpha lies between 0 and 1")
    tested = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    significant = set()
    for rank, (p, index) in enumerate(tested):
        if p > alpha / (len(tested) - rank):
            break
        significant.add(index)
    return tuple(index in significant for index in range(len(p_values)))


def benjamini_hochberg(p_values: Sequence[float | None]) -> tuple[bool, ...]:
    """Find the significant tests of a whole suite, bounding the share of false findings.

    Holm bounds the probability of any false finding. This bounds their share: on average
    over many nightly runs, at most 5 % of the findings are false. It suits a suite of
    hundreds of series, where Holm would find little.

    Args:
        p_values: One for each test; None if there is none, which is never a finding.

    Returns:
        Whether each test is a finding.

    Source: Benjamini & Hochberg, "Controlling the false discovery rate" (1995), who prove it for
    independent tests. It also holds for tests with positive regression dependency (Benjamini
    & Yekutieli, "The control of the false discovery rate in multiple testing under dependency",
    Annals of Statistics 29(4), 2001, theorem 1.2). Two-sided comparisons with one baseline are
    not known to have this property; for them, simulations stay within 5 %
    (docs/explanation/statistics/comparisons.md). Their correction for any dependency,
    the share over 1 + 1/2 + ... + 1/m, is not applied.

    >>> benjamini_hochberg([0.01, 0.04, None, 0.03])
    (True, True, False, True)
    """
    tested = sorted(p for p in p_values if p is not None)
    # The largest p-value below its line makes all smaller ones findings too.
    passing = [
        p for rank, p in enumerate(tested, start=1) if p <= _FALSE_SHARE * rank / len(tested)
    ]
    limit = max(passing, default=-1.0)
    return tuple(p is not None and p <= limit for p in p_values)


def suite_findings(comparisons: Sequence[Comparison | None]) -> tuple[bool, ...]:
    """Find the comparisons of a whole run or suite that remain significant after correction.

    Args:
        comparisons: All that are judged together, of every scenario; None if a cell
            has none.

    Returns:
        Whether each is `faster` or `slower` and remains so by Benjamini and Hochberg's
        method: on average, at most one in twenty of the findings is false.
    """
    significant = benjamini_hochberg(
        [None if comparison is None else comparison.p_value for comparison in comparisons]
    )
    return tuple(
        comparison is not None and is_significant and comparison.verdict in {"faster", "slower"}
        for comparison, is_significant in zip(comparisons, significant, strict=True)
    )
