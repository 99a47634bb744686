"""What a fleet has measured, what is missing, and why."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, get_args

from msgspec import Struct, to_builtins

from corebound.fleet.folder import ShardState
from corebound.fleet.plan import Plan

# In the order of a summary.
Word = Literal[
    "collected", "done", "running", "queued", "planned", "lost", "failed", "refused", "cancelled"
]
WORDS: tuple[Word, ...] = get_args(Word)


class ShardStatus(Struct, frozen=True, kw_only=True):
    """The status of a shard.

    Attributes:
        host: The host, by the engine's name for it.
        status: `done`: measured, but not collected.
        reason: Why it is not collected, or what is worth knowing; empty if all is well.
        attempts: How often it was delivered.
        clock_skew_s: Seconds by which the host's clock is ahead, if it is clearly wrong.
    """

    shard: str
    host: str
    scenario: str
    status: Word
    reason: str
    attempts: int
    clock_skew_s: float | None = None


class FleetStatus(Struct, frozen=True, kw_only=True):
    """The status of a plan.

    `unasked` says why the engine could not be asked about shards in flight. `uncollected` has other
    rounds with shards that are in flight or done, the latest first, and the number of these.
    """

    plan: str
    name: str
    round: str
    engine: str
    commit: str
    shards: tuple[ShardStatus, ...]
    unasked: str = ""
    uncollected: dict[str, int] = {}

    @property
    def counts(self) -> dict[Word, int]:
        """The number of shards by status, without zeros."""
        counted = Counter(shard.status for shard in self.shards)
        return {word: counted[word] for word in WORDS if counted[word]}

    @property
    def is_measured(self) -> bool:
        """Whether every shard is done."""
        return all(shard.status in {"done", "collected"} for shard in self.shards)

    @property
    def document(self) -> dict[str, Any]:
        """The status as plain data, as `--json` prints it."""
        return {**to_builtins(self), "counts": self.counts, "is_measured": self.is_measured}


def fleet_status(
    plan: Plan, states: Mapping[str, ShardState], absent: Mapping[str, str] | None = None
) -> FleetStatus:
    """Describe every shard of a plan.

    Args:
        absent: The hosts that can start nothing now, with the reason; default: as it was when
            the engine was asked last.
    """
    asked = absent or {}
    shards = []
    for shard in plan.shards:
        state = states.get(shard.id, ShardState())
        word, reason = _describe(state)
        if word in {"planned", "lost"}:
            reason = "; ".join(filter(None, (reason, asked.get(shard.host, state.absent))))
        shards.append(
            ShardStatus(
                shard=shard.id,
                host=shard.host,
                scenario=shard.scenario,
                status=word,
                reason=reason,
                attempts=len(state.attempts),
                clock_skew_s=state.clock_skew_s,
            )
        )
    return FleetStatus(
        plan=plan.id,
        name=plan.name,
        round=plan.round,
        engine=plan.engine,
        commit=plan.commit.name,
        shards=tuple(shards),
    )


def _describe(state: ShardState) -> tuple[Word, str]:
    if state.collected:
        return "collected", state.problem or (state.report.reason if state.report else "")
    if state.problem:
        return "refused", state.problem
    if state.report is not None:
        return state.report.state, state.report.reason
    if not state.attempts:
        return "planned", ""
    last = state.attempts[-1]
    if last.state == "ended":
        return "lost", last.reason or "its agent ended without a report"
    return last.state, last.reason
