"""Fairness checks, each evaluated from the evidence in the records."""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.throughput import peak_share
from corebound.analysis.wording import count
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


class _Rule(Struct, frozen=True, kw_only=True):
    """The wording of a check: `holds` is shown if it passed, `fails` if it failed."""

    holds: str
    fails: str

    def judged(self, evidence: str, *, passed: bool | None) -> Check:
        says = self.fails if passed is False else self.holds
        return Check(passed=passed, says=says, evidence=evidence)


_BINDING = _Rule(holds="All threads stayed on their CPUs", fails="Some threads ran on other CPUs")
_THREADS = _Rule(
    holds="Thread counts match the configuration",
    fails="Thread counts differ from the configuration",
)
_NOT_PROVEN = _Rule(
    holds="Thread counts are not proven for every configuration", fails=_THREADS.fails
)
_ORDER = _Rule(
    holds="Cells ran in random order, block by block",
    fails="Cells ran in the same order in every block",
)
_PAUSES = _Rule(
    holds="Launches that took turns were paused in turn",
    fails="A launch ran while it was paused",
)
_STEADY = _Rule(
    holds="All launches reached steady state", fails="Some launches did not reach steady state"
)
_LEFTOVER_PROCESSES = _Rule(
    holds="No leftover processes", fails="Some processes outlived their launch"
)
_ENVIRONMENT = _Rule(
    holds="Versions are the same in all launches of an environment",
    fails="Versions differ between launches of an environment",
)
_SAMPLING_COST = _Rule(
    holds=f"Sampling overhead: under {percent(_MAX_SAMPLING_SHARE)} of one CPU",
    fails=f"Sampling overhead: over {percent(_MAX_SAMPLING_SHARE)} of one CPU",
)
_HOST = _Rule(
    holds="No host check gave a warning when the run started",
    fails="Host checks gave warnings when the run started",
)
_PEAK = _Rule(
    holds="No cell exceeds the computed peak of its cores",
    fails="A cell exceeds the computed peak of its cores",
)


def _binding(launches: Sequence[Launch]) -> Check:
    bound = [launch for launch in launches if launch.placement and launch.placement.bound]
    if not bound:
        return _BINDING.judged("no cell binds its threads", passed=None)
    verified = [
        launch for launch in bound if launch.status in {"ok", "invalid"} and not is_refused(launch)
    ]
    proven = [launch for launch in verified if launch.status == "ok" and _kept_to_slots(launch)]
    passed = len(proven) == len(verified)
    evidence = f"binding verified in {len(proven)} of {count(len(verified), 'launch', 'launches')}"
    if not passed:
        evidence += " that bind; the others are discarded"
    if proven:
        evidence += f"; at least {count(min(proof.looks for proof in proven), 'sample')} each"
    return _BINDING.judged(evidence, passed=passed)


def _kept_to_slots(launch: Launch) -> bool:
    """Whether threads were sampled, and all of them only on the CPUs of their slot."""
    placement = launch.placement
    if placement is None:
        return False
    is_sampled = False
    for worker in launch.workers:
        slot = set(placement.slots[worker.slot].cpus)
        for thread in worker.threads:
            is_sampled = is_sampled or bool(thread.stays) or bool(thread.allowed)
            stays = (stay for stay in thread.stays if _counts(launch, stay.from_ms))
            if any(stay.cpu not in slot for stay in stays):
                return False
    return is_sampled


def _counts(launch: Launch, from_ms: int) -> bool:
    """Whether a sample counts.

    Workers bound after their start may run anywhere before timing begins.
    """
    return from_ms >= 0 or not (launch.placement and launch.placement.moment == "after-start")


def _threads(launches: Sequence[Launch]) -> Check:
    proofs = Counter(
        state
        for launch in launches
        if not is_refused(launch)
        for worker in launch.workers
        if (state := proof(launch, worker)) is not None
    )
    if not proofs:
        return _THREADS.judged("no cell sets a number", passed=None)
    evidence = f"as many threads as requested were seen to compute in {proofs['proven']} of"
    evidence += f" {count(proofs.total(), 'worker')}"
    if proofs["contradicted"]:
        evidence += f"; {count(proofs['contradicted'], 'worker')} had another number"
        return _THREADS.judged(evidence, passed=False)
    if proofs["not proven"]:
        evidence += "; the others computed with fewer, or too little was seen"
        return _NOT_PROVEN.judged(evidence, passed=None)
    return _THREADS.judged(evidence, passed=True)


def _order(launches: Sequence[Launch], result: ScenarioResult) -> Check:
    blocks: dict[int, list[Launch]] = {}
    for launch in launches:
        blocks.setdefault(launch.block, []).append(launch)
    orders = {
        tuple(launch.cell.key for launch in sorted(block, key=lambda launch: launch.position))
        for block in blocks.values()
    }
    cells = {launch.cell.key for launch in launches}
    seed = f"seed {result.run.seed}"
    if len(blocks) < 2 or len(cells) < 2:
        return _ORDER.judged(f"only one block or cell;  {seed}", passed=None)
    orders_found = f"{len(orders)} different orders" if len(orders) > 1 else "one order"
    return _ORDER.judged(
        f"{orders_found} in {count(len(blocks), 'block')}; {seed}", passed=len(orders) > 1
    )


def _pauses(launches: Sequence[Launch]) -> Iterator[Check]:
    """Whether launches that took turns used CPU time in the turns of others."""
    paused = [launch for launch in launches if launch.pauses or launch.wait]
    pauses = [one for launch in paused for one in (launch.pauses, launch.wait) if one]
    if not pauses:
        return
    paused_ns = sum(pause.duration_ns for pause in pauses)
    share = sum(pause.cpu_ns for pause in pauses) / paused_ns if paused_ns else 0.0
    yield _PAUSES.judged(
        f"{count(len(paused), 'launch', 'launches')} took turns and used {percent(share, 2)} of a"
        " CPU while paused",
        passed=all(pause.were_quiet for pause in pauses),
    )


def _steady(result: ScenarioResult) -> Check:
    launches = sum(len(cell.summary.launches) for cell in result.cells)
    unsettled = sum(cell.summary.unsettled for cell in result.cells)
    evidence = f"{launches - unsettled} of {count(launches, 'launch', 'launches')} did"
    return _STEADY.judged(evidence, passed=unsettled == 0 if launches else None)


def _leftover_processes(launches: Sequence[Launch]) -> Check:
    affected = [launch for launch in launches if launch.leftover_processes]
    if not affected:
        evidence = f"no stray process in {count(len(launches), 'launch', 'launches')}"
    else:
        names = ", ".join(
            dict.fromkeys(name for launch in affected for name in launch.leftover_processes)
        )
        evidence = f"ended after {count(len(affected), 'launch', 'launches')}: {names}"
    return _LEFTOVER_PROCESSES.judged(evidence, passed=not affected)


def _environment(launches: Sequence[Launch]) -> Check:
    versions_by_environment: dict[str, set[tuple[object, ...]]] = {}
    for launch in launches:
        for worker in launch.workers:
            if worker.python is not None:
                versions = (worker.python, worker.blas, *sorted(worker.versions.items()))
                versions_by_environment.setdefault(launch.cell.environment, set()).add(versions)
    if not versions_by_environment:
        return _ENVIRONMENT.judged("no worker reported its versions", passed=None)
    differing = sorted(
        name for name, versions in versions_by_environment.items() if len(versions) > 1
    )
    names = ", ".join(sorted(versions_by_environment))
    evidence = f"versions differ in {', '.join(differing)}" if differing else names
    return _ENVIRONMENT.judged(evidence, passed=not differing)


def _sampling_cost(launches: Sequence[Launch]) -> Check:
    spent_ns = sum(launch.look_ns for launch in launches)
    wall_ns = sum(launch.duration_ns for launch in launches)
    share = spent_ns / wall_ns if wall_ns else 0.0
    looks = sum(launch.looks for launch in launches)
    evidence = f"{percent(share, 2)} over {count(looks, 'sample')}"
    return _SAMPLING_COST.judged(evidence, passed=share <= _MAX_SAMPLING_SHARE)


def _host(result: ScenarioResult) -> Check:
    host_checks = result.run.preflight
    if host_checks is None:
        return _HOST.judged("not checked", passed=None)
    warnings = [check.check for check in host_checks if check.state == "warning"]
    hidden = sum(check.state == "unavailable" for check in host_checks)
    evidence = ", ".join(warnings) or count(len(host_checks) - hidden, "check")
    if hidden:
        evidence += f"; {count(hidden, 'other')} unavailable"
    return _HOST.judged(evidence, passed=not warnings)


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
    yield _PEAK.judged(evidence, passed=not above)
