"""Paint times and size budgets, as `benchmarks.paint` measures them."""

import pytest
from benchmarks import paint

from corebound.scenario.matrix import expand
from support import needs
from support.build import a_launch, a_run, a_scenario

pytestmark = [pytest.mark.browser, needs.chromium, needs.libatomic]


def test_pages_paint_and_stay_within_their_size_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    launches = tuple(
        a_launch(cell=cell, block=block, position=position)
        for block in range(6)
        for position, cell in enumerate(expand(a_scenario(), "sums.yaml"))
    )
    monkeypatch.setattr(paint, "run_scenario", lambda _folder: (a_run(), launches))

    for page in paint.measure(scenarios=2, loads=1):
        # How soon is for the quiet host where the benchmark is to run.
        times_ms = (*page.first_paints_ms, *page.interactive_ms, *page.thread_ms)
        assert len(times_ms) == 3
        assert all(time_ms > 0 for time_ms in times_ms)
        assert page.nodes > 100
        assert page.packed_bytes < (60_000 if "overview" in page.name else 120_000)
