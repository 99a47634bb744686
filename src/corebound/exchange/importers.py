"""The tools whose result files can be imported, each declared once.

The command, the Python function and the reading of files derive from `IMPORTERS`. The modules of
readers are imported when one is used, because the command line lists all tools.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from corebound.exchange.result_files import Reader

Tool = Literal[
    "pyperf",
    "pytest-benchmark",
    "hyperfine",
    "google-benchmark",
    "criterion",
    "github-action-benchmark",
    "bencher",
    "csv",
    "json",
]
# What the user may say of files that lack it: `columns` is what those of a table are.
Stated = Literal["host", "commit", "date", "columns"]


_OF_TABLES: tuple[Stated, ...] = ("host", "commit", "date", "columns")


class Importer(NamedTuple):
    """How the results of a tool are imported.

    Attributes:
        module: The module of this package with the function `read`, which reads a file, or a
            folder: each series, and what is wrong with a part that is skipped.
        states: What the user may say of the files.
        reads_folders: Whether it reads a folder as a whole, and not its files.
        files: The pattern of the files of a folder.
    """

    module: str
    help: str
    states: tuple[Stated, ...] = ("host", "commit", "date")
    reads_folders: bool = False
    files: str = "*.json"

    @property
    def read(self) -> Reader:
        """The function that reads a file of the tool."""
        module = importlib.import_module(f"corebound.exchange.{self.module}")
        read: Reader = module.read
        return read


# In the order of the help.
IMPORTERS: Mapping[Tool, Importer] = {
    "pyperf": Importer(
        module="pyperf",
        help="""Import results of pyperf.

        Each file becomes a point in the history of its benchmarks.

        Examples:
            corebound import pyperf results/*.json
            corebound import pyperf bench.json --project json
        """,
    ),
    "pytest-benchmark": Importer(
        module="pytest_benchmark",
        help="""Import results of pytest-benchmark.

        All rounds of a benchmark are of one process, so each file is one launch. Files of one
        commit and day that are imported together are launches of one point.

        Examples:
            corebound import pytest-benchmark .benchmarks --project parser
        """,
    ),
    "hyperfine": Importer(
        module="hyperfine",
        help="""Import results of hyperfine.

        Each run of a command is a launch. The files name neither host nor commit.

        Examples:
            corebound import hyperfine times.json --project tool --commit HEAD --host ci
        """,
    ),
    "google-benchmark": Importer(
        module="google_benchmark",
        help="""Import JSON results of Google Benchmark.

        All repetitions are of one process, so each file is one launch. Real time is imported.

        Examples:
            corebound import google-benchmark out.json --project codec --commit HEAD
        """,
    ),
    "criterion": Importer(
        module="criterion",
        help="""Import the latest results of Criterion.

        All samples of a benchmark are of one process, so each folder is one launch. The results
        name neither host nor commit.

        Examples:
            corebound import criterion target/criterion --project codec --commit HEAD
        """,
        reads_folders=True,
    ),
    "github-action-benchmark": Importer(
        module="github_action_benchmark",
        help="""Import the history that github-action-benchmark keeps.

        Each value is one launch.

        Examples:
            corebound import github-action-benchmark dev/bench/data.js --project codec
        """,
        states=("host",),
    ),
    "bencher": Importer(
        module="bencher",
        help="""Import Bencher Metric Format.

        Each value is one launch. The files name neither host nor commit.

        Examples:
            corebound import bencher results.json --project codec --commit HEAD
        """,
    ),
    "csv": Importer(
        module="plain_table",
        help="""Import any CSV: its first line names the columns, and you say which they are.

        Each value is one launch. Rows of one commit and day are launches of one point.

        Examples:
            corebound import csv nights.csv --project db --time date --value p99 --unit ms
            corebound import csv all.csv --project db --benchmark name --value rate --unit ops/s
        """,
        states=_OF_TABLES,
        files="*.csv",
    ),
    "json": Importer(
        module="plain_table",
        help="""Import any JSON with a list of objects, or one object a line.

        Columns of nested objects have dots: `stats.median`.

        Examples:
            corebound import json runs.json --project db --rows results --time at --value stats.p99
            corebound import json nights.jsonl --project db --time ts --revision sha --value ms
        """,
        states=_OF_TABLES,
    ),
}
