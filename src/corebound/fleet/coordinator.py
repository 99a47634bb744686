"""Deliver the shards of a plan to an engine, and keep what became of each on disk.

Everything may be delivered again: agents return the report of a shard that is done. A shard whose
agent is lost waits for its own host; it never moves to another one.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec.structs import replace

from corebound.fleet.engines import Engine, JobState
from corebound.fleet.file import FleetFile, duration_s
from corebound.fleet.folder import Attempt, PlanFolder, ShardReport, ShardState
from corebound.fleet.plan import Assignment, Plan, Shard

# Deliveries of one shard within one command; an agent that is killed again needs a person.
MOST_ATTEMPTS = 3
# Clocks closer than this are close enough, and a report takes its time.
_SKEW_S = 60.0
_IN_FLIGHT = frozenset({"queued", "running"})
# Why a report does not count.
DAMAGED = "its report is damaged or half copied: copy its folder again"
UNSIGNED = "its report is not signed with the key of this plan: it is of another one, or changed"


def assignment_of(folder: PlanFolder, fleet: FleetFile, shard: Shard) -> Assignment:
    """What an agent needs to carry out a shard."""
    plan = folder.plan
    # Dask's hosts may share nothing with us; those of the other engines share the plan's folder.
    shared = None if plan.engine == "dask" else str(folder.path.absolute() / "work")
    return Assignment(
        plan=plan.id,
        shard=shard.id,
        host=shard.host,
        scenario=plan.scenario_of(shard),
        commit=plan.commit.sha,
        source=plan.source,
        bundle=str(folder.bundle.absolute()),
        key=folder.key,
        labels={**fleet.labels, **plan.host_of(shard).labels},
        work=fleet.work or shared,
        wheelhouse=fleet.wheelhouse,
        profile=fleet.profile,
        only=fleet.only,
        launches=fleet.launches,
        budget_s=None if fleet.budget is None else duration_s(fleet.budget),
    )


def in_flight(state: ShardState) -> bool:
    """Whether the last delivery of a shard has not ended, as far as is known."""
    is_open = bool(state.attempts) and state.attempts[-1].state in _IN_FLIGHT
    return is_open and not is_done(state)


def is_done(state: ShardState) -> bool:
    """Whether an agent has reported that a shard is done."""
    return state.report is not None and state.report.state == "done"


class Coordinator:
    """Delivers the shards of one plan; `step` until it returns False."""

    def __init__(
        self,
        folder: PlanFolder,
        fleet: FleetFile,
        engine: Engine,
        *,
        now: Callable[[], str],
        again: bool = False,
    ) -> None:
        """Take a plan and its engine.

        Args:
            folder: The plan, whose lock the caller holds.
            now: Returns the time, ISO 8601 in UTC.
            again: Whether to deliver shards again that have failed or were cancelled.
        """
        self._folder = folder
        self._fleet = fleet
        self._engine = engine
        self._now = now
        self._again = again
        self._deliveries: Counter[str] = Counter()
        self.states = {shard.id: folder.state_of(shard) for shard in folder.plan.shards}
        self._ready = {shard.id for shard in folder.plan.shards if self._is_due(shard)}
        # Hosts that can start nothing now, each with the reason.
        self.absent: Mapping[str, str] = {}

    def _is_due(self, shard: Shard) -> bool:
        """Whether this command should deliver a shard."""
        state = self.states[shard.id]
        if is_done(state) or in_flight(state):
            return False
        if state.report is not None:
            return self._again
        return self._again or not state.attempts or state.attempts[-1].state != "cancelled"

    def step(self) -> bool:
        """Ask the engine about deliveries, and deliver what can start.

        Returns:
            Whether any shard is in flight.

        Raises:
            CoreboundError: The engine does not answer, or the plan's folder cannot be written.
        """
        self.poll()
        self._submit()
        return any(map(in_flight, self.states.values()))

    @property
    def waiting(self) -> tuple[Shard, ...]:
        """Shards that should start, but whose hosts are absent."""
        return tuple(
            shard
            for shard in self._folder.plan.shards
            if shard.id in self._ready and shard.host in self.absent
        )

    def cancel(self) -> int:
        """Stop all deliveries in flight; returns their number."""
        jobs = self._jobs()
        self._engine.cancel(jobs)
        for shard in self._folder.plan.shards:
            if shard.id in jobs:
                self._end(shard, JobState(state="cancelled"))
        self._ready.clear()
        return len(jobs)

    def _jobs(self) -> dict[str, tuple[Assignment, str]]:
        return {
            shard.id: (
                assignment_of(self._folder, self._fleet, shard),
                self.states[shard.id].attempts[-1].job,
            )
            for shard in self._folder.plan.shards
            if in_flight(self.states[shard.id])
        }

    def poll(self) -> None:
        """Ask the engine about deliveries in flight."""
        jobs = self._jobs()
        answers = self._engine.poll(jobs) if jobs else {}
        for shard in self._folder.plan.shards:
            if shard.id in answers:
                self._end(shard, answers[shard.id])

    def _end(self, shard: Shard, answer: JobState) -> None:
        """Keep what the engine says of the last delivery of a shard."""
        if answer.report is not None and not answer.report.is_signed(self._folder.key):
            answer = JobState(state="lost", reason=UNSIGNED)
        state = self.states[shard.id]
        last = replace(state.attempts[-1], state=answer.state, reason=answer.reason)
        updated = replace(state, attempts=(*state.attempts[:-1], last))
        if answer.report is not None:
            skew_s = clock_skew_s(answer.report, state.attempts[0].started_at, self._now())
            updated = replace(updated, report=answer.report, clock_skew_s=skew_s)
        if updated != state:
            self._write(shard, updated)
        if answer.state == "lost":
            self._ready.add(shard.id)

    def _submit(self) -> None:
        plan = self._folder.plan
        due = [
            shard
            for shard in plan.shards
            if shard.id in self._ready and self._deliveries[shard.id] < MOST_ATTEMPTS
        ]
        if not due:
            self.absent = {}
            return
        self.absent = self._engine.absent(tuple(dict.fromkeys(shard.host for shard in due)))
        for shard in due:
            state, reason = self.states[shard.id], self.absent.get(shard.host, "")
            if state.absent != reason:
                self._write(shard, replace(state, absent=reason))
        busy = {shard.host for shard in plan.shards if in_flight(self.states[shard.id])}
        chosen: list[Shard] = []
        for shard in due:
            if shard.host in self.absent or (self._engine.one_at_a_time and shard.host in busy):
                continue
            busy.add(shard.host)
            chosen.append(shard)
        if chosen:
            self._deliver(chosen)

    def _deliver(self, chosen: list[Shard]) -> None:
        tasks = [assignment_of(self._folder, self._fleet, shard) for shard in chosen]
        again = self._again or any(self._deliveries[shard.id] for shard in chosen)
        shards = {shard.id: shard for shard in chosen}
        for shard_id, job in self._engine.submit(tasks, again=again):
            attempt = Attempt(job=job, started_at=self._now(), state="queued")
            state = self.states[shard_id]
            self._ready.discard(shard_id)
            self._deliveries[shard_id] += 1
            attempts = (*state.attempts, attempt)
            fresh = replace(state, attempts=attempts, report=None, problem="")
            self._write(shards[shard_id], fresh)

    def _write(self, shard: Shard, state: ShardState) -> None:
        self._folder.write_state(shard, state)
        self.states[shard.id] = state


def clock_skew_s(report: ShardReport, submitted_at: str, now: str) -> float | None:
    """How far a host's clock is ahead, in seconds, if it is clearly wrong.

    A report is made between its shard's first delivery and now, by the coordinator's clock.
    """
    try:
        ended, earliest, latest = (
            datetime.fromisoformat(text) for text in (report.ended_at, submitted_at, now)
        )
    except ValueError:
        return None
    if (ahead_s := (ended - latest).total_seconds()) > _SKEW_S:
        return ahead_s
    if (behind_s := (ended - earliest).total_seconds()) < -_SKEW_S:
        return behind_s
    return None


def fleet_of(plan: Plan) -> FleetFile:
    """The fleet file of a plan, as it was when it was frozen."""
    return FleetFile.model_validate(plan.document)
