"""Several comparisons at once: how many would look like a finding by chance alone."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.stats.comparison import Comparison, Verdict


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


def benjamini_hochberg(
    p_values: Sequence[float | None], *, alpha: float = 0.05
) -> tuple[bool, ...]:
    """Tell the findings of a whole suite, with few false ones among those told.

    Where Holm keeps the chance of any false finding small, this keeps their share
    small: of the findings of a night, at most `alpha` are false on average over many nights. For
    a suite of hundreds of series, where Holm would see little.

    Args:
        p_values: One for each test; None where there is none, which is no finding.
        alpha: What share of the findings may be false on average, in (0, 1).

    Returns:
        For each test whether it is a finding.

    Raises:
        ValueError: `alpha` lies outside (0, 1).

    Source: Benjamini & Hochberg, "Controlling the false discovery rate" (1995), who prove it for
    independent tests. It holds as well for tests with positive regression dependency (Benjamini
    & Yekutieli, "The control of the false discovery rate in multiple testing under dependency",
    Annals of Statistics 29(4), 2001, theorem 1.2). Two-sided comparisons with one baseline are
    not known to have it; for them 5 % is what simulations keep to (docs/statistics.md). Their
    correction for any dependency, alpha / (1 + 1/2 + ... + 1/m), is not made.

    >>> benjamini_hochberg([0.01, 0.04, None, 0.03])
    (True, True, False, True)
    """
    if not 0 < alpha < 1:
        raise ValueError("alpha lies between 0 and 1")
    tested = sorted(p for p in p_values if p is not None)
    # The greatest p-value under its line takes all smaller ones with it.
    passing = [p for rank, p in enumerate(tested, start=1) if p <= alpha * rank / len(tested)]
    limit = max(passing, default=-1.0)
    return tuple(p is not None and p <= limit for p in p_values)


def suite_findings(comparisons: Sequence[Comparison | None]) -> tuple[bool, ...]:
    """Tell which rows of a whole run or suite are findings, and not one of many by chance.

    Args:
        comparisons: All that are judged together, of every scenario; None where a cell
            has none.

    Returns:
        For each whether it is `faster` or `slower` and stays so by Benjamini and Hochberg's
        method: of all that are told as findings, one in twenty is false at most, on average.
    """
    clear = benjamini_hochberg([None if one is None else one.p_value for one in comparisons])
    return tuple(
        one is not None and is_clear and one.verdict in {"faster", "slower"}
        for one, is_clear in zip(comparisons, clear, strict=True)
    )


class CommitPair(Struct, frozen=True, kw_only=True):
    """A cell at two commits.

    Attributes:
        scenario: The scenario's name, without what the comparison added to it.
        cell: The cell's key, without its commit.
        base_ns, head_ns: Time of an iteration at each; None where it has no figure.
        comparison: Of head with base; None where one has no figure.
        margin: What counts as no difference.
        missing: Why a side has no figure, in words; empty where both have.
        cpu_ratio: CPU time of an iteration at head, as a multiple of that at base; None where
            one is not known. No verdict rests on it.
    """

    scenario: str
    cell: str
    base_ns: float | None
    head_ns: float | None
    comparison: Comparison | None
    margin: float
    missing: tuple[str, ...]
    cpu_ratio: float | None = None

    @property
    def cpu_differs(self) -> bool:
        """Whether CPU time changed by what the interval of wall time does not hold.

        Wall time holds waiting and what else ran on the host as well.
        """
        bounds = self.comparison.interval if self.comparison else None
        return (
            bounds is not None
            and self.cpu_ratio is not None
            and not bounds.low <= 1 / self.cpu_ratio <= bounds.high
        )


class JudgedPair(Struct, frozen=True, kw_only=True):
    """A pair, and what it is as one of many.

    `verdict` is None without a comparison. `is_regression`: slower by more than the
    margin at the best guess, and a finding of the whole suite.
    """

    pair: CommitPair
    verdict: Verdict | None
    is_regression: bool


def judge(pairs: Sequence[CommitPair]) -> tuple[JudgedPair, ...]:
    """Give each pair its verdict; `faster` and `slower` have to hold among all of them.

    Of the differences told, one in twenty at most is none (Benjamini & Hochberg). The
    others of the pairs whose own interval excludes 1 are `undecided`.
    """
    findings = benjamini_hochberg(
        [pair.comparison.p_value if pair.comparison else None for pair in pairs]
    )
    return tuple(_judged(pair, found=found) for pair, found in zip(pairs, findings, strict=True))


def _judged(pair: CommitPair, *, found: bool) -> JudgedPair:
    compared = pair.comparison
    if compared is None:
        return JudgedPair(pair=pair, verdict=None, is_regression=False)
    verdict = compared.verdict
    if verdict in {"faster", "slower"} and not found:
        verdict = "undecided"
    is_regression = verdict == "slower" and compared.speedup_ratio < 1 / (1 + pair.margin)
    return JudgedPair(pair=pair, verdict=verdict, is_regression=is_regression)
