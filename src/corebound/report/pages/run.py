"""A run's page: its command, its host, and the status of every launch."""

from collections import Counter
from collections.abc import Iterator, Sequence

from corebound.analysis.launch_counts import (
    LaunchCounts,
    discarded_launches,
    evidence_of,
    fix_of,
    launch_counts,
)
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.suggested_commands import CommandLine, scenario_command
from corebound.analysis.time_spent import between_launches, time_spent
from corebound.analysis.wording import Text, TextSpan, capital, count, day, rich, total_time
from corebound.diagnosis.host import throttled_text
from corebound.errors import Fault
from corebound.present.run import time_table
from corebound.present.sections import Fact
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.report.elements import Head, Hero, Page, damaged_records
from corebound.report.scenario.provenance import host_facts, lock_fact
from corebound.units import cpu_quota, size


def run_page(
    run: Run,
    launches: Sequence[Launch],
    *,
    results: Sequence[ScenarioResult] = (),
    raw: bool = True,
    faults: Sequence[Fault] = (),
) -> Page:
    """Build the page of one run.

    Args:
        launches: All its launches, in any order.
        results: Its results that are the latest.
        raw: Whether its records are in the site.
        faults: Records of it that could not be read.
    """
    flag = damaged_records(faults)
    ordered = sorted(
        launches, key=lambda launch: (launch.kind, launch.block, launch.position, launch.id)
    )
    discarded = {launch.id: reason for launch, reason in discarded_launches(launches)}
    rows = tuple((launch, _notes(launch, discarded.get(launch.id, ""))) for launch in ordered)
    # A profile that failed is shown, too.
    uncounted = tuple(
        row for row in rows if row[0].id in discarded or row[0].status not in {"ok", "skipped"}
    )
    fixes = Counter(fix_of(launch, launches) for launch, _ in uncounted)
    counts = launch_counts(launches)
    spent = time_spent(launches, results)
    return Page(
        run=run,
        head=Head(
            title=f"Run {run.id} on {run.host.name}",
            description=f"What was run on {run.host.name} at {day(run.started_at)}.",
            made=f"Measured with corebound {run.corebound}.",
        ),
        hero=Hero(
            title=f"Run {run.id}",
            context=f"on {run.host.name}, {day(run.started_at)}",
            verdict=_verdict(counts),
            support=rich(_support(run, launches, counts)),
            flags=() if flag is None else (flag,),
        ),
        has_raw=raw,
        facts=_facts(run),
        scenarios=_scenarios(run, launches),
        launches=rows,
        uncounted=uncounted,
        fixes=tuple(
            (fix, count(number, "launch", "launches")) for fix, number in fixes.most_common() if fix
        ),
        time=time_table(spent, between_launches(launches, spent.values())),
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
    known = (counts.reasons,) if counts.total_discarded else (counts.headline,)
    return f"{capital('; '.join((*known, *counts.others)))}. {scenarios}.{took}"


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
        facts.append(Fact(term="Commit", value=run.commit.sha, code=True))
        if run.commit.dirty:
            facts.append(Fact(term="Uncommitted changes", value=run.commit.name, code=True))
        facts += [
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
        rows.append((title, name, text, command))
    return tuple(rows)


def _process_settings(launch: Launch) -> Iterator[str]:
    """The OpenMP runtime and the huge pages of a launch, if its cell sets them."""
    if launch.cell.openmp is not None:
        loaded = sorted({name for worker in launch.workers for name in worker.libraries})
        yield f"loaded: {', '.join(loaded) or 'no OpenMP runtime'}"
    pages = [worker.huge_pages for worker in launch.workers if worker.huge_pages is not None]
    if pages:
        yield f"{size(sum(each.size_bytes for each in pages))} of memory in huge pages"


def _notes(launch: Launch, discarded: str) -> tuple[str, ...]:
    notes = [capital(launch.reason or discarded), *evidence_of(launch)]
    if launch.leftover_processes:
        notes.append(
            f"left running by its worker, and ended: {', '.join(launch.leftover_processes)}"
        )
    if (quota := launch.quota) is not None:
        notes.append(f"CPU quota of {cpu_quota(quota.cpus)}: {throttled_text(quota)}")
    notes.extend(_process_settings(launch))
    return tuple(filter(None, notes))
