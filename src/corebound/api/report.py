"""Write the static site, from a script or a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

from corebound.api.measure import CallReporter
from corebound.records.decisions import DECISIONS_FILE
from corebound.records.jsonl import RECORDS
from corebound.workflow import report as workflow
from corebound.workflow.publish import DEFAULT_SITE
from corebound.workflow.report import WrittenSite


# Not `report`, which is the package with the pages.
def write_site(
    out: str | PathLike[str] = DEFAULT_SITE,
    *,
    records: str | PathLike[str] = RECORDS,
    status: str | PathLike[str] = DECISIONS_FILE,
    only: Sequence[str] = (),
    compare: Sequence[str] = (),
    address: str = "",
    notify: Callable[[str], object] | None = None,
) -> WrittenSite:
    """Write the static site of a folder of records, as `corebound report` does.

    Args:
        out: The folder of the site; created if necessary.
        records: The folder of records.
        status: The file of decisions about regressions.
        only: Names of scenarios and imported data, or shell patterns of them; empty for everything.
        compare: Pairs of runs or commits, each `A..B`, that get a page of their own.
        address: The URL that the site will have, for link previews.
        notify: Called with a warning for each thing that cannot be read; `print` shows them.

    Returns:
        The site; `index` is its first page, and `document` what `corebound report --json` prints.

    Raises:
        InputError: A folder does not exist, no name matches, or the site cannot be written.
    """
    return workflow.write_site(
        Path(records),
        Path(out),
        CallReporter(notify).notify,
        lambda _step, _done, _total: None,
        status=Path(status),
        only=only,
        compare=compare,
        address=address,
    )
