"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ProjectName = Annotated[str | None, typer.Option("--project", help="What to call the project.")]
# Where commands look for records by themselves.
RECORDS = Path("reports/records")
Records = Annotated[Path, typer.Option("--records", help="The folder of records.")]
