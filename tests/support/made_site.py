"""A site as a test reads it: the text of its pages and data."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from corebound.analysis.host_records import Record
from corebound.report import site
from corebound.report.inputs import Inputs
from support.report_sample import NOW


def pages_of(records: Sequence[Record], **known: Any) -> dict[str, str]:
    """Every page and data file by its path in the site; what is packed is unpacked.

    Args:
        records: Every run with its launches, in any order.
        known: What else the site is made of, as `Inputs` has it.
    """
    with TemporaryDirectory() as folder:
        out = Path(folder)
        site.write(Inputs(records=records, now=NOW, **known), out)
        return {
            file.relative_to(out).as_posix(): _text(file)
            for file in sorted(out.rglob("[!.]*"))
            if file.is_file() and file.parent.name != "assets"
        }


def _text(file: Path) -> str:
    data = file.read_bytes()
    return (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
