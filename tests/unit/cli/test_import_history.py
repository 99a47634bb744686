"""What an import prints about the history that it stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corebound.cli.commands.import_history import NamedCount, print_import
from corebound.exchange.history_import import ImportSummary

COUNTS = (
    NamedCount(12, "result files", "result file", "result_files"),
    NamedCount(
        0, "commits not in the repository", "commit not in the repository", "unknown_commits"
    ),
    NamedCount(
        1, "benchmarks that no longer exist", "benchmark that no longer exists", "benchmarks"
    ),
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
    print_import("p", COUNTS, HISTORY, (), as_json=False)

    first, *_ = capsys.readouterr().out.splitlines()
    assert first == "p: 12 result files, 1 benchmark that no longer exists"


def test_json_has_all_counts(capsys: pytest.CaptureFixture[str]) -> None:
    print_import("p", COUNTS, HISTORY, (), as_json=True)

    assert json.loads(capsys.readouterr().out)["unknown_commits"] == 0
