"""Specifies Fisher's exact test."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from corebound.stats.contingency import fisher_p_value

counts = st.integers(0, 20)


@given(a=counts, b=counts, c=counts, d=counts)
def test_it_is_the_probability_of_tables_as_unlikely(a: int, b: int, c: int, d: int) -> None:
    expected = stats.fisher_exact(np.array([[a, b], [c, d]])).pvalue

    assert fisher_p_value(((a, b), (c, d))) == pytest.approx(float(expected))
