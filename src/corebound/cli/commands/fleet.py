"""`corebound fleet`: measure on many hosts, through an existing engine."""

import os
import platform
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer
from msgspec import to_builtins
from rich.table import Table
from rich.text import Text

from corebound.analysis.wording import about_time, count
from corebound.cli.options import Output
from corebound.cli.output.console import Console, print_table
from corebound.errors import InputError, LaunchError
from corebound.fleet.agent import HOST_VARIABLE
from corebound.fleet.folder import PlanFolder, ShardReport, open_path
from corebound.fleet.status import FleetStatus, ShardStatus
from corebound.records.jsonl import RECORDS
from corebound.workflow import fleet as fleets
from corebound.workflow.fleet import File, FleetRequest, Folder
from corebound.workflow.options import Argument, Option, Records

# More hosts with the same status are one row.
_MOST_ROWS = 8
Detach = Annotated[bool, Option("Return when the engine has the jobs (Slurm, Kubernetes).")]


def plan(
    file: File,
    *,
    round_name: Annotated[
        str, Option("Name of this repetition, such as the date of a night.", name="--round")
    ] = "1",
    folder: Folder = fleets.FOLDER,
    console: Console,
) -> Output:
    """Freeze what each host measures: scenarios, commit and environments.

    The same inputs give the same plan, and what is measured already stays.

    Examples:
        corebound fleet plan fleet.yaml
        corebound fleet plan fleet.yaml --round 2026-11-24
    """
    request = FleetRequest(file=file, folder=folder)
    plan_folder = fleets.plan_fleet(request, round_name, console.print_line)
    frozen = plan_folder.plan
    lines = (
        f"Plan {frozen.id}: {count(len(frozen.shards), 'shard')},"
        f" {count(len(frozen.scenarios), 'scenario')} on {count(len(frozen.hosts), 'host')},"
        f" commit {frozen.commit.name}\nFolder: {plan_folder.path}"
    )
    return Output(plan_folder, lambda: Console().print_line(lines))


def run(request: FleetRequest, *, detach: Detach = False, console: Console) -> Output:
    """Measure what the plan has not measured yet, and wait for it.

    Plans first if there is no plan. Exits with 4 if a shard is missing at the end.

    Examples:
        corebound fleet run fleet.yaml
        corebound fleet run fleet.yaml --detach
        corebound fleet run fleet.yaml --round 2026-11-24
    """
    return _run(request, console, again=False, detach=detach)


def resume(request: FleetRequest, *, detach: Detach = False, console: Console) -> Output:
    """Measure what is missing, including shards that failed or were cancelled.

    Each shard resumes on its own host, with the launches that it has.

    Examples:
        corebound fleet resume fleet.yaml
        corebound fleet resume fleet.yaml --round 2026-11-24
    """
    return _run(request, console, again=True, detach=detach)


def _run(request: FleetRequest, console: Console, *, again: bool, detach: bool) -> Output:
    notify = console.print_line
    plan_folder = fleets.open_or_plan(request, notify)
    result = fleets.run_fleet(plan_folder, notify, again=again, detach=detach)
    code = 0 if detach or result.is_measured else LaunchError.exit_code
    return Output(result, partial(_show_status, result, Console()), code)


def status(request: FleetRequest) -> Output:
    """Show what is measured, what is missing and why, and other rounds to collect.

    Examples:
        corebound fleet status fleet.yaml
        corebound fleet status fleet.yaml --round 2026-11-24
    """
    result = fleets.status_of_fleet(request.open())
    return Output(result, partial(_show_status, result, Console()))


def collect(
    request: FleetRequest,
    *,
    copied: Annotated[
        tuple[Path, ...],
        Option(
            "Copy of a host's working folder, if it cannot be reached; repeatable.", name="--from"
        ),
    ] = (),
    records: Records = RECORDS,
    console: Console,
) -> Output:
    """Merge the records of all hosts into one folder.

    Collecting twice changes nothing. Exits with 4 if records were refused.

    Examples:
        corebound fleet collect fleet.yaml
        corebound fleet collect fleet.yaml --round 2026-11-24
        corebound fleet collect fleet.yaml --from copies/n1 --from copies/n2
    """
    result = fleets.collect_fleet(request.open(), records, copied, console.print_line)
    files = [how for merged in result.merged.values() for how in merged.merges]
    fresh = sum(how in {"new", "longer"} for how in files)
    message = f"{count(len(files), 'file')} collected, {fresh} new or longer: {records}"
    code = LaunchError.exit_code if result.has_refused else 0
    return Output(result, lambda: Console().print_line(message), code)


def cancel(request: FleetRequest) -> Output:
    """Stop all shards in flight; launches that they have recorded remain.

    Examples:
        corebound fleet cancel fleet.yaml
        corebound fleet cancel fleet.yaml --round 2026-11-24
    """
    number = fleets.cancel_fleet(request.open())
    message = "The running `corebound fleet run` stops its shards."
    if number is not None:
        message = f"{count(number, 'shard')} cancelled."
    return Output({"cancelled": number}, lambda: typer.echo(message))


def forget(
    file: File,
    host: Annotated[str, Argument("The fleet's name for the host.", metavar="HOST")],
    *,
    folder: Folder = fleets.FOLDER,
) -> Output:
    """Forget which machine a host was, so that the next machine of this name is accepted.

    Needed after a host was replaced or renamed, or its machine id or CPUs have changed. Collected
    records remain.

    Examples:
        corebound fleet hosts forget fleet.yaml n1
    """
    forgotten = fleets.forget_host(FleetRequest(file=file, folder=folder).open(), host)
    message = f"{host} was {forgotten}; the next machine of this name is accepted."
    return Output({"host": host, "forgotten": forgotten}, lambda: typer.echo(message))


def agent(
    plan_folder: Annotated[
        Path, Argument("Folder of a plan, as `fleet plan` prints it.", metavar="FOLDER")
    ],
    *,
    host: Annotated[
        str | None, Option("The fleet's name for this host; default: its host name.")
    ] = None,
    index: Annotated[int | None, Option("Carry out only this shard of the plan.", min=0)] = None,
) -> Output:
    """Carry out the shards of this host, without an engine.

    Examples:
        corebound fleet agent reports/fleet/lab/0123456789ab --host n1
        corebound fleet agent reports/fleet/lab/0123456789ab --host n1 --index 0
    """
    frozen = open_path(plan_folder)
    name = host or os.environ.get(HOST_VARIABLE) or platform.node()
    reports = fleets.carry_out_by_hand(frozen, name, index)
    if not reports:
        raise InputError(
            what=f"the plan has no shard for the host `{name}`.",
            where=str(plan_folder),
            fix=f"Pass --host with one of: {_some_hosts(frozen)}.",
        )
    lines = "\n".join(_report_line(frozen, report) for report in reports)
    is_done = all(report.state == "done" for report in reports)
    return Output(
        {"reports": to_builtins(reports)},
        lambda: Console().print_line(lines),
        0 if is_done else LaunchError.exit_code,
    )


def _some_hosts(plan_folder: PlanFolder) -> str:
    names = [host.name for host in plan_folder.plan.hosts]
    return ", ".join(names[:10]) + (", …" if len(names) > 10 else "")


def _report_line(plan_folder: PlanFolder, report: ShardReport) -> str:
    scenario = next(s.scenario for s in plan_folder.plan.shards if s.id == report.shard)
    return f"{scenario}: {report.state}" + (f": {report.reason}" if report.reason else "")


def _show_status(result: FleetStatus, console: Console) -> None:
    counts = ", ".join(f"{number} {word}" for word, number in result.counts.items())
    console.print(Text(f"{result.name}, round {result.round}, plan {result.plan}: {counts}"))
    if result.unasked:
        console.print(Text(f"The engine was not asked: {result.unasked}"))
    for name, number in [*result.uncollected.items()][:_MOST_ROWS]:
        shards = f"{count(number, 'shard')} not collected"
        console.print(Text(f"Another round has {shards}: --round {quote(name)}"))
    notable = [
        shard
        for shard in result.shards
        if shard.reason or shard.clock_skew_s or shard.status not in {"done", "collected"}
    ]
    if not notable:
        return
    table = Table(box=None, padding=(0, 1))
    for heading in ("host", "scenario", "status", "why"):
        table.add_column(heading, overflow="fold")
    alike: dict[tuple[str, str, str], list[str]] = {}
    for shard in notable:
        alike.setdefault((shard.scenario, shard.status, _why(shard)), []).append(shard.host)
    for cells, hosts in alike.items():
        named = hosts if len(hosts) <= _MOST_ROWS else [_listed(hosts)]
        for host in named:
            table.add_row(*map(Text, (host, *cells)))
    print_table(table, console)


def _why(shard: ShardStatus) -> str:
    why = [shard.reason] if shard.reason else []
    if shard.clock_skew_s:
        direction = "ahead" if shard.clock_skew_s > 0 else "behind"
        why.append(f"its clock is {about_time(abs(shard.clock_skew_s))} {direction}")
    return "; ".join(why)


def _listed(hosts: Sequence[str]) -> str:
    """The first and the last of many hosts: `n001, n002 … n999 (999 hosts)`."""
    return f"{hosts[0]}, {hosts[1]} … {hosts[-1]} ({count(len(hosts), 'host')})"
