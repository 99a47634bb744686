"""What is written down of each request while measuring: numbers only, in arrays."""

from __future__ import annotations

from array import array

from msgspec import Struct

from corebound.serving.generator.connection import Answer

# In place of a kind of error, for the requests that had none.
OK = 0


class Moments(Struct, frozen=True, kw_only=True):
    """When a request could have gone, from when it counts, and when it went."""

    due_ns: int
    from_ns: int
    sent_ns: int


class Samples:
    """Room for every request of a launch, made before the first is sent."""

    def __init__(self, requests: int) -> None:
        """Make room; times are those of the generator's clock."""
        room = bytes(8 * requests)
        self.latency_ns = array("q", room)
        self.lateness_ns = array("q", room)
        self.ended_ns = array("q", room)
        self.error = array("H", bytes(2 * requests))
        self.kinds: list[str] = ["ok"]
        self.noted = 0
        self.waited = 0

    def note(self, index: int, moments: Moments, answer: Answer) -> None:
        """Write down how one request went."""
        self.latency_ns[index] = answer.ended_ns - moments.from_ns
        self.lateness_ns[index] = max(0, moments.sent_ns - moments.due_ns)
        self.ended_ns[index] = answer.ended_ns
        self.noted += 1
        if answer.error is not None:
            if answer.error not in self.kinds:
                self.kinds.append(answer.error)
            self.error[index] = self.kinds.index(answer.error)

    @property
    def ok(self) -> int:
        """How many were answered well."""
        return self.noted - sum(self.errors.values())

    @property
    def errors(self) -> dict[str, int]:
        """The others by kind, the most frequent first."""
        counts = {
            kind: self.error.count(code) for code, kind in enumerate(self.kinds) if code != OK
        }
        return dict(sorted(counts.items(), key=lambda item: -item[1]))
