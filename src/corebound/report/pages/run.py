"""A run's page: its command, its host, and the status of every launch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from corebound.analysis.commands import (
    CommandLine,
    launch_command,
    original_command,
    scenario_command,
)
from corebound.analysis.launch_metrics import (
    LaunchCounts,
    discarded_launches,
    evidence_of,
    fix_of,
    launch_counts,
    reason_of,
)
from corebound.analysis.wording import (
    Text,
    TextSpan,
    capital,
    count,
    day,
    rich,
    total_time,
)
from corebound.diagnosis.host import throttled_text
from corebound.errors import Fault
from corebound.machine.doctor.result import HostCheck
from corebound.present.sections import Fact
from corebound.records.launch_record import Launch
from corebound.records.run_record import Commit, Run
from corebound.report.elements import Head, Hero, damaged_records
from corebound.report.scenario.launches import log_tail
from corebound.report.scenario.provenance import host_facts, lock_fact
from corebound.report.urls import host_file, raw_file, run_file
from corebound.units import cpu_quota, size


class RunLaunch(Struct, frozen=True, kw_only=True):
    """One launch, whatever its status.

    Attributes:
        notes: Why it has no result or does not count.
        log: The end of its log.
        command: Launches its cell again.
    """

    launch: Launch
    notes: tuple[str, ...]
    log: str
    command: CommandLine


class RunPage(Struct, frozen=True, kw_only=True):
    """A run.

    Attributes:
        address: The address of the page, from the site's top.
        host: Address of its host's page.
        raw: Address of its records, or empty if they are not in the site.
        command: The command that started it.
        scenarios: (title, address, its launches in words, command to measure it again) of each.
        checks: The doctor's results; None if it did not run.
        uncounted_launches: Launches that were discarded or failed; `launches` are all.
        fixes: What to do about them: each advice once, with the number of launches it is for.
        launch_counts: The number of launches of each kind.
    """

    address: str
    head: Head
    hero: Hero
    host: str
    raw: str
    command: CommandLine
    facts: tuple[Fact, ...]
    scenarios: tuple[tuple[str, str, str, CommandLine], ...]
    checks: tuple[HostCheck, ...] | None
    uncounted_launches: tuple[RunLaunch, ...]
    fixes: tuple[tuple[str, str], ...]
    launches: tuple[RunLaunch, ...]
    launch_counts: str


def run_page(
    run: Run, launches: Sequence[Launch], *, raw: bool = True, faults: Sequence[Fault] = ()
) -> RunPage:
    """Build the page of one run.

    Args:
        run: The run.
        launches: All its launches, in any order.
        raw: Whether its records are in the site.
        faults: Records of it that could not be read.
    """
    flag = damaged_records(faults)
    ordered = sorted(
        launches, key=lambda launch: (launch.kind, launch.block, launch.position, launch.id)
    )
    discarded = {launch.id: reason for launch, reason in discarded_launches(launches)}
    rows = tuple(_launch(run, launch, discarded.get(launch.id, "")) for launch in ordered)
    # A profile that failed is shown, too.
    uncounted = tuple(
        row
        for row in rows
        if row.launch.id in discarded or row.launch.status not in {"ok", "skipped"}
    )
    counts = launch_counts(launches)
    return RunPage(
        address=run_file(run),
        head=Head(
            title=f"Run {run.id} on {run.host.name}",
            description=f"What was run on {run.host.name} at {day(run.started_at)}.",
            root="../",
            made=f"Measured with corebound {run.corebound}.",
        ),
        hero=Hero(
            title=f"Run {run.id}",
            question="",
            context=f"on {run.host.name}, {day(run.started_at)}",
            verdict=_verdict(counts),
            support=rich(_support(run, launches, counts)),
            flags=() if flag is None else (flag,),
        ),
        host=f"../{host_file(run.host.id)}",
        raw=f"../{raw_file(run)}" if raw else "",
        command=original_command(run),
        facts=_facts(run),
        scenarios=_scenarios(run, launches),
        checks=run.preflight,
        uncounted_launches=uncounted,
        fixes=_fixes(uncounted, launches),
        launches=rows,
        launch_counts=counts.says,
    )


def _verdict(counts: LaunchCounts) -> Text:
    if not counts.counted and not counts.discarded:
        return rich("No launch was made." if counts.skipped else "No launch was recorded.")
    if not counts.total_discarded:
        return rich("Every launch ", TextSpan("counts", "good"), ".")
    return rich(TextSpan(counts.headline, "bad"), ".")


def _support(run: Run, launches: Sequence[Launch], counts: LaunchCounts) -> str:
    spent_ns = sum(
        launch.duration_ns
        for launch in launches
        if launch.kind == "measure" and launch.status != "skipped"
    )
    scenarios = count(len(run.scenarios), "scenario")
    took = f" The launches took {total_time(spent_ns)} together." if spent_ns else ""
    return f"{scenarios}; {counts.says}.{took}"


def _facts(run: Run) -> tuple[Fact, ...]:
    facts = [
        Fact(term="Run", value=run.id, code=True),
        Fact(term="Started", value=day(run.started_at)),
        Fact(term="Seed", value=str(run.seed)),
        Fact(term="Profile", value=run.profile or "none"),
        Fact(term="Corebound", value=run.corebound),
    ]
    if run.only:
        facts.append(Fact(term="Only", value=" ".join(run.only), code=True))
    if run.commit is not None:
        facts += [
            Fact(term="Commit", value=run.commit.sha, code=True),
            *_changes(run.commit),
            Fact(term="Subject", value=run.commit.subject),
            Fact(term="Committed", value=day(run.commit.committed_at)),
        ]
    facts += host_facts(run)
    facts += [lock_fact(lock) for lock in run.environments]
    facts += [
        Fact(term="Scenario", value=f"{source.path}, SHA-256 {source.sha256[:16]}", code=True)
        for source in run.scenarios
    ]
    return tuple(facts)


def _changes(commit: Commit) -> tuple[Fact, ...]:
    """The facts that show which uncommitted changes were measured."""
    if not commit.dirty:
        return ()
    return (Fact(term="Uncommitted changes", value=commit.name, code=True),)


def _scenarios(
    run: Run, launches: Sequence[Launch]
) -> tuple[tuple[str, str, str, CommandLine], ...]:
    rows = []
    cells_of = [launch.cell for launch in launches]
    for source in run.scenarios:
        name = str(source.document.get("name", ""))
        text = launch_counts(launch for launch in launches if launch.cell.scenario == name).says
        title = str(source.document.get("title") or name)
        cells = tuple({cell.id: cell for cell in cells_of if cell.scenario == name}.values())
        command = scenario_command(run, source, cells)
        rows.append((title, f"../scenario/{name}.html", text, command))
    return tuple(rows)


def _process_settings(launch: Launch) -> Iterator[str]:
    """The OpenMP runtime and the huge pages of a launch, if its cell sets them."""
    if launch.cell.openmp is not None:
        loaded = sorted({name for worker in launch.workers for name in worker.libraries})
        yield f"loaded: {', '.join(loaded) or 'no OpenMP runtime'}"
    pages = [worker.huge_pages for worker in launch.workers if worker.huge_pages is not None]
    if pages:
        yield f"{size(sum(each.size_bytes for each in pages))} of memory in huge pages"


def _fixes(
    uncounted: Sequence[RunLaunch], launches: Sequence[Launch]
) -> tuple[tuple[str, str], ...]:
    """Each advice about these launches, and how many it is for; that of most launches first."""
    numbers = Counter(fix_of(row.launch, launches) for row in uncounted)
    return tuple(
        (fix, count(number, "launch", "launches")) for fix, number in numbers.most_common() if fix
    )


def _launch(run: Run, launch: Launch, discarded: str) -> RunLaunch:
    notes = [reason_of(launch) or capital(discarded), *evidence_of(launch)]
    if launch.leftover_processes:
        notes.append(
            f"left running by its worker, and ended: {', '.join(launch.leftover_processes)}"
        )
    if (quota := launch.quota) is not None:
        notes.append(f"CPU quota of {cpu_quota(quota.cpus)}: {throttled_text(quota)}")
    notes.extend(_process_settings(launch))
    return RunLaunch(
        launch=launch,
        notes=tuple(note for note in notes if note),
        log=log_tail(launch, even_ok=True),
        command=launch_command(run, launch),
    )
