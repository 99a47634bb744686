"""The launches of a run that do not count: which, how many, and why."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.model.record import Launch
from corebound.model.run import Run
from corebound.report.view.addresses import run_file
from corebound.report.view.command import CommandLine, cells_command
from corebound.report.view.page import Label
from corebound.report.view.words import full_name, label


class FailedRow(Struct, frozen=True, kw_only=True):
    """Launches of the latest run that did not count, for one reason.

    `label` is of the first of so many `cells` of one scenario; `command` launches them again.
    `ids` are of these cells: one cell may have several reasons.
    """

    title: str
    address: str
    label: Label
    cells: int
    ids: frozenset[str]
    status: str
    reason: str
    command: CommandLine | None


def _is_good(launch: Launch) -> bool:
    return launch.kind == "measure" and launch.status == "ok"


def failed_rows(run: Run, launches: Sequence[Launch]) -> list[FailedRow]:
    """One row a scenario, status and reason of the run.

    A launch that was made again in its block, and counted then, is none of them.
    """
    repeated = {(one.cell.id, one.block) for one in launches if _is_good(one)}
    titles = {
        str(source.document.get("name")): str(source.document.get("title") or "")
        for source in run.scenarios
    }
    alike: dict[tuple[str, str, str], list[Launch]] = {}
    for launch in sorted(launches, key=lambda one: one.cell.id):
        if (launch.cell.id, launch.block) in repeated:
            continue
        if launch.kind == "measure" and launch.status not in {"ok", "skipped"}:
            reason = launch.reason or full_name(launch.cell)
            alike.setdefault((launch.cell.scenario, launch.status, reason), []).append(launch)
    return [
        FailedRow(
            title=titles.get(scenario) or scenario,
            address=run_file(run),
            label=label(own[0].cell),
            cells=len(cells),
            ids=frozenset(cell.id for cell in cells),
            status=f"{len(own)} {status}",
            reason=reason,
            command=cells_command(run, cells),
        )
        for (scenario, status, reason), own in alike.items()
        for cells in [tuple({one.cell.id: one.cell for one in own}.values())]
    ]
