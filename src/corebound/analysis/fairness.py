"""Fairness checks, each evaluated from the evidence in the records."""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.throughput import peak_share
from corebound.analysis.wording import count
from corebound.groups import grouped
from corebound.records.launch_record import Launch
from corebound.records.thread_use import proof
from corebound.stats.interference import is_refused
from corebound.units import percent

# Sampling threads costs CPU time. Above this share it could affect the results.
_MAX_SAMPLING_SHARE = 0.005


class Check(Struct, frozen=True, kw_only=True):
    """A fairness check and its evidence; `passed` is None if there was nothing to check.

    `says` states what holds if the check passed or could not be made, and what failed otherwise.
    """

    passed: bool | None
    says: str
    evidence: str


def checks(result: ScenarioResult) -> tuple[Check, ...]:
    """All checks of a scenario; empty if the scenario has no launch."""
    tried = [launch for launch in result.launches if launch.status != "skipped"]
    if not tried:
        return ()
    return (
        _binding(tried),
        _threads(tried),
        _order(tried, result),
        *_pauses(tried),
        _steady(result),
        _leftover_processes(tried),
        _environment(tried),
        _sampling_cost(tried),
        _host(result),
        *_peak(result),
    )


def _check(evidence: str, *, passed: bool | None, holds: str, fails: str) -> Check:
    return Check(passed=passed, says=fails if passed is False else holds, evidence=evidence)


def _binding(launches: Sequence[Launch]) -> Check:
    bound = [launch for launch in launches if launch.placement and launch.placement.bound]
    judged = [
        launch for launch in bound if launch.status in {"ok", "invalid"} and not is_refused(launch)
    ]
    verified = [launch for launch in judged if launch.status == "ok" and _kept_to_slots(launch)]
    passed = len(verified) == len(judged) if bound else None
    evidence = f"binding verified in {len(verified)} of {count(len(judged), 'launch', 'launches')}"
    if passed is False:
        evidence += " that bind; the others are discarded"
    elif passed is None:
        evidence = "no cell binds its threads"
    if verified:
        evidence += f"; at least {count(min(launch.looks for launch in verified), 'sample')} each"
    return _check(
        evidence,
        passed=passed,
        holds="All threads stayed on their CPUs",
        fails="Some threads ran on other CPUs",
    )


def _kept_to_slots(launch: Launch) -> bool:
    """Whether threads were sampled, and all of them only on the CPUs of their slot."""
    placement = launch.placement
    if placement is None:
        return False
    threads = [
        (thread, placement.slots[worker.slot].cpus)
        for worker in launch.workers
        for thread in worker.threads
    ]
    # Workers bound after their start may run anywhere before timing begins.
    is_late = placement.moment == "after-start"
    return any(thread.stays or thread.allowed for thread, _ in threads) and all(
        stay.cpu in cpus
        for thread, cpus in threads
        for stay in thread.stays
        if stay.from_ms >= 0 or not is_late
    )


def _threads(launches: Sequence[Launch]) -> Check:
    proofs = Counter(
        state
        for launch in launches
        if not is_refused(launch)
        for worker in launch.workers
        if (state := proof(launch, worker)) is not None
    )
    passed: bool | None = True
    holds = "Thread counts match the configuration"
    evidence = f"as many threads as requested were seen to compute in {proofs['proven']} of"
    evidence += f" {count(proofs.total(), 'worker')}"
    if not proofs:
        evidence, passed = "no cell sets a number", None
    elif proofs["contradicted"]:
        evidence += f"; {count(proofs['contradicted'], 'worker')} had another number"
        passed = False
    elif proofs["not proven"]:
        holds = "Thread counts are not proven for every configuration"
        evidence += "; the others computed with fewer, or too little was seen"
        passed = None
    return _check(
        evidence,
        passed=passed,
        holds=holds,
        fails="Thread counts differ from the configuration",
    )


def _order(launches: Sequence[Launch], result: ScenarioResult) -> Check:
    blocks = grouped(launches, lambda launch: launch.block)
    orders = {
        tuple(launch.cell.key for launch in sorted(block, key=lambda launch: launch.position))
        for block in blocks.values()
    }
    cells = {launch.cell.key for launch in launches}
    passed = len(orders) > 1 if len(blocks) > 1 and len(cells) > 1 else None
    orders_found = f"{len(orders)} different orders" if passed else "one order"
    evidence = f"{orders_found} in {count(len(blocks), 'block')}"
    if passed is None:
        evidence = "only one block or cell"
    return _check(
        f"{evidence}; seed {result.run.seed}",
        passed=passed,
        holds="Cells ran in random order, block by block",
        fails="Cells ran in the same order in every block",
    )


def _pauses(launches: Sequence[Launch]) -> Iterator[Check]:
    """Whether launches that took turns used CPU time in the turns of others."""
    paused = [launch for launch in launches if launch.pauses or launch.wait]
    pauses = [pause for launch in paused for pause in (launch.pauses, launch.wait) if pause]
    if not pauses:
        return
    paused_ns = sum(pause.duration_ns for pause in pauses)
    share = sum(pause.cpu_ns for pause in pauses) / paused_ns if paused_ns else 0.0
    yield _check(
        f"{count(len(paused), 'launch', 'launches')} took turns and used {percent(share, 2)} of a"
        " CPU while paused",
        passed=all(pause.were_quiet for pause in pauses),
        holds="Launches that took turns were paused in turn",
        fails="A launch ran while it was paused",
    )


def _steady(result: ScenarioResult) -> Check:
    launches = sum(len(cell.summary.launches) for cell in result.cells)
    unsettled = sum(cell.summary.unsettled for cell in result.cells)
    evidence = f"{launches - unsettled} of {count(launches, 'launch', 'launches')} did"
    return _check(
        evidence,
        passed=unsettled == 0 if launches else None,
        holds="All launches reached steady state",
        fails="Some launches did not reach steady state",
    )


def _leftover_processes(launches: Sequence[Launch]) -> Check:
    affected = [launch for launch in launches if launch.leftover_processes]
    if not affected:
        evidence = f"no stray process in {count(len(launches), 'launch', 'launches')}"
    else:
        names = ", ".join(
            dict.fromkeys(name for launch in affected for name in launch.leftover_processes)
        )
        evidence = f"ended after {count(len(affected), 'launch', 'launches')}: {names}"
    return _check(
        evidence,
        passed=not affected,
        holds="No leftover processes",
        fails="Some processes outlived their launch",
    )


def _environment(launches: Sequence[Launch]) -> Check:
    versions_by_environment: dict[str, set[tuple[object, ...]]] = {}
    for launch in launches:
        for worker in launch.workers:
            if worker.python is not None:
                versions = (worker.python, worker.blas, *sorted(worker.versions.items()))
                versions_by_environment.setdefault(launch.cell.environment, set()).add(versions)
    differing = sorted(
        name for name, versions in versions_by_environment.items() if len(versions) > 1
    )
    names = ", ".join(sorted(versions_by_environment))
    evidence = f"versions differ in {', '.join(differing)}" if differing else names
    passed = not differing if versions_by_environment else None
    return _check(
        evidence or "no worker reported its versions",
        passed=passed,
        holds="Versions are the same in all launches of an environment",
        fails="Versions differ between launches of an environment",
    )


def _sampling_cost(launches: Sequence[Launch]) -> Check:
    spent_ns = sum(launch.look_ns for launch in launches)
    wall_ns = sum(launch.duration_ns for launch in launches)
    share = spent_ns / wall_ns if wall_ns else 0.0
    looks = sum(launch.looks for launch in launches)
    evidence = f"{percent(share, 2)} over {count(looks, 'sample')}"
    return _check(
        evidence,
        passed=share <= _MAX_SAMPLING_SHARE,
        holds=f"Sampling overhead: under {percent(_MAX_SAMPLING_SHARE)} of one CPU",
        fails=f"Sampling overhead: over {percent(_MAX_SAMPLING_SHARE)} of one CPU",
    )


def _host(result: ScenarioResult) -> Check:
    host_checks = result.run.preflight or ()
    warnings = [check.check for check in host_checks if check.state == "warning"]
    hidden = sum(check.state == "unavailable" for check in host_checks)
    evidence = ", ".join(warnings) or count(len(host_checks) - hidden, "check")
    if hidden:
        evidence += f"; {count(hidden, 'other')} unavailable"
    is_checked = result.run.preflight is not None
    return _check(
        evidence if is_checked else "not checked",
        passed=not warnings if is_checked else None,
        holds="No host check gave a warning when the run started",
        fails="Host checks gave warnings when the run started",
    )


def _peak(result: ScenarioResult) -> Iterator[Check]:
    """Check that no cell exceeds its cores' peak; no check if no cell has a peak share."""
    ratios = [
        share.ratio
        for cell in result.cells
        if (share := peak_share(cell, result.scenario, result.run.host)) is not None
    ]
    if not ratios:
        return
    above = sum(ratio > 1 for ratio in ratios)
    evidence = f"the highest reached {percent(max(ratios), 0)}"
    if above:
        evidence += (
            f", above it {count(above, 'cell')} of {len(ratios)}: something that the peak"
            " assumes is wrong, most likely the clock (turbo)"
        )
    yield _check(
        evidence,
        passed=not above,
        holds="No cell exceeds the computed peak of its cores",
        fails="A cell exceeds the computed peak of its cores",
    )
