"""Paint times and size budgets, as `benchmarks.paint` measures them."""

from __future__ import annotations

import pytest
from benchmarks import paint

from support import needs

pytestmark = [
    pytest.mark.browser,
    needs.chromium,
    needs.libatomic,
]


def test_pages_paint_and_stay_within_their_size_budget() -> None:
    overview, scenario = paint.measure(scenarios=3, loads=2)

    for page in (overview, scenario):
        # How soon is for the quiet host where the benchmark is to run.
        assert len(page.first_paints_ms) == 2
        assert all(painted_ms > 0 for painted_ms in page.first_paints_ms)
        assert all(interactive_ms > 0 for interactive_ms in page.interactive_ms)
        assert all(thread_ms > 0 for thread_ms in page.thread_ms)
        assert page.nodes > 100
    assert overview.packed_bytes < 60_000
    assert scenario.packed_bytes < 120_000
