"""`corebound compare` reads only the two runs."""

from pathlib import Path

from corebound.workflow.compare import compare_recorded


def test_two_runs_are_compared_by_reading_two(records: Path, runs_read: list[str]) -> None:
    def compare() -> None:
        compare_recorded("night1", "night3", records, print)

    compare()
    # The index keeps the results of earlier runs from the first comparison on.
    assert runs_read == ["night1", "night3", "night2"]
    runs_read.clear()

    compare()

    assert runs_read == ["night1", "night3"]
