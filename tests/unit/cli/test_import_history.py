"""What an import prints about the history that it stored."""

from pathlib import Path

import pytest

from corebound.cli.commands.import_history import NamedCount, print_import
from corebound.exchange.history_import import ImportSummary
from support.texts import in_order, numbers_in

COUNTS = (
    NamedCount(12, "result files", "result file"),
    NamedCount(0, "commits not in the repository", "commit not in the repository"),
    NamedCount(1, "benchmarks that no longer exist", "benchmark that no longer exists"),
)


HISTORY = ImportSummary(
    file=Path("records/history/p.jsonl"),
    series=1,
    points=12,
    values=12,
    added=12,
    empty=0,
    single=0,
    reasons=(),
)


def test_the_text_omits_counts_of_zero(capsys: pytest.CaptureFixture[str]) -> None:
    print_import("p", COUNTS, HISTORY, ())

    first, *_ = capsys.readouterr().out.splitlines()
    assert in_order(first, "p: 12 result files", "1 benchmark ")
    assert numbers_in(first) == [12, 1]
