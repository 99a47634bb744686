"""Read a table of a view by its headings."""

from typing import Any

from corebound.present.sections import Table


def column(table: Table, heading: str) -> list[Any]:
    """The values of a column, from the first row to the last."""
    (at,) = (at for at, one in enumerate(table.columns) if one.heading == heading)
    return [row[at] for row in table.rows]
