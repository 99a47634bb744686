"""Several comparisons at once: how many would look like a finding by chance alone."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None], *, alpha: float = 0.05) -> tuple[bool, ...]:
    """Tell the findings from a family of tests, with few false ones in the whole family.

    Args:
        p_values: One for each test; None where there is none, which is no finding.
        alpha: How likely the family may be to hold any false finding, in (0, 1).

    Returns:
        For each test whether it is a finding.

    Raises:
        ValueError: `alpha` lies outside (0, 1).

    Source: Holm, "A simple sequentially rejective multiple test procedure" (1979). Unlike
    Benjamini and Hochberg's it needs no independence, and comparisons that share a
    baseline have none.

    >>> holm([0.01, 0.04, None, 0.03])
    (True, False, False, False)
    """
    if not 0 < alpha < 1:
        raise ValueError("alpha lies between 0 and 1")
    tested = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    found = set()
    for rank, (p, index) in enumerate(tested):
        if p > alpha / (len(tested) - rank):
            break
        found.add(index)
    return tuple(index in found for index in range(len(p_values)))
