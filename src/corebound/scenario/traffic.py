"""What a load generator is told to send, and what it says came of it: JSON lines.

The runner writes one `GeneratorOrder`. The generator imports
and connects everything, sends the warm-up requests and says `warmed`; it waits for
`wire.GO`, measures, says `answered`, and stays alive until its orders end, so that
it can be looked at last. In place of the rest it may say `failure`.

Latencies travel as HDR histograms in their own encoding (version 2, base64), in
microseconds with 3 significant digits: `stats.latency` reads and merges them.
"""

from __future__ import annotations

import json
from typing import Any, Literal, get_args

from msgspec import Struct, to_builtins

from corebound.bounds import Amount, Count, Positive, Share, Signed
from corebound.worker.protocol import Failure, WireError

# `closed` keeps so many requests under way, as ApacheBench does. `constant` and
# `poisson` send at a rate, whatever the server does. The rest are MLPerf's.
Shape = Literal[
    "closed", "constant", "poisson", "single-stream", "multi-stream", "server", "offline"
]
Client = Literal["corebound", "ab"]

# The shapes that send by a schedule: their latencies count from the intended time.
OPEN: tuple[Shape, ...] = ("constant", "poisson", "server")


class Traffic(Struct, frozen=True, kw_only=True):
    """What is sent to a server in one launch.

    Attributes:
        shape: When the next request is sent.
        requests: How many are measured; a multiple of `samples_a_query`.
        warmup_requests: How many are sent before, and kept apart.
        concurrency: Requests under way at once; `closed` only.
        rate_per_s: Requests intended each second; the open shapes only.
        samples_a_query: Requests of one query; `multi-stream` only.
        bound_ms: What a request may take; `server` only.
        client: Who sends them; `ab` for `closed` only.
        seed: Of the arrivals, where they are random.
        timeout_s: What a request may take before it counts as an error: from its
            intended time in the open shapes, from being sent in the others.
    """

    shape: Shape
    requests: Count
    warmup_requests: Count
    concurrency: Count | None = None
    rate_per_s: Positive | None = None
    samples_a_query: Count | None = None
    bound_ms: Positive | None = None
    client: Client = "corebound"
    seed: Signed = 0
    timeout_s: Positive = 300.0

    def __post_init__(self) -> None:
        if self.shape not in get_args(Shape) or self.client not in get_args(Client):
            raise ValueError("a traffic's shape and client are known ones")
        if self.requests < 1 or self.warmup_requests < 0 or not self.timeout_s > 0:
            raise ValueError("a traffic has requests, and time for them")
        _matches("concurrency", self.concurrency, belongs=self.shape == "closed")
        _matches("rate_per_s", self.rate_per_s, belongs=self.shape in OPEN)
        _matches("samples_a_query", self.samples_a_query, belongs=self.shape == "multi-stream")
        _matches("bound_ms", self.bound_ms, belongs=self.shape == "server")
        if self.samples_a_query and self.requests % self.samples_a_query:
            raise ValueError("a traffic's queries are whole")
        if self.client == "ab" and self.shape != "closed":
            raise ValueError("ab sends in a closed loop only")


def _matches(name: str, value: float | None, *, belongs: bool) -> None:
    if belongs != (value is not None) or (value is not None and not value > 0):
        raise ValueError(f"`{name}` is above 0 where its shape has it, and absent elsewhere")


class GeneratorOrder(Struct, frozen=True, kw_only=True):
    """What one generator is to do.

    Attributes:
        traffic: What to send.
        host, port: Where to; a name is looked up once.
        path: With its query, such as `/predictions/resnet50`.
        method: `GET`, `POST` or another.
        content_type: Of the body; None: not told.
        body_file: What every request carries; None: nothing.
        connections: The most that may be open at once, in the shapes that do not
            themselves say how many: the open ones and `offline`. A request that waits
            for one ages.
    """

    traffic: Traffic
    host: str
    port: int
    path: str
    method: str = "POST"
    content_type: str | None = None
    body_file: str | None = None
    connections: int = 256


class Warmed(Struct, frozen=True, kw_only=True):
    """The warm-up requests are through; the generator waits for `GO`.

    Attributes:
        ok: Answered with a status of 200 to 299.
        errors: The others, counted by kind as in `Answered`.
    """

    kind: Literal["warmed"] = "warmed"
    ok: Count
    errors: dict[str, Count]


class Window(Struct, frozen=True, kw_only=True):
    """What ended within one stretch of time.

    `worst_ns` is the longest latency among `ok`, None where there is none.
    """

    ok: Count
    errors: Count
    worst_ns: Count | None


class MlPerf(Struct, frozen=True, kw_only=True):
    """What MLPerf's rules say of a run; an error counts as a query that took for ever.

    Attributes:
        queries: How many there were; a query is several requests in `multi-stream`,
            and all of them in `offline`.
        percentile: The share of queries that the rule is about; None for `offline`.
        needed: The least queries that early stopping asks for with what was seen;
            None for `offline`.
        satisfied: Whether there were as many, and for `server`, so few over the bound.
        over_bound: Queries that took longer than `bound_ms`; `server` only.
        latency_ns: Early stopping's estimate of the percentile, never below it with a
            confidence of 0.99; the streams only, where there were enough queries.
        discarded: The queries above that estimate.
        samples_per_s: Requests answered each second; `offline` only.
    """

    queries: Count
    percentile: Share | None
    needed: Count | None
    satisfied: bool
    over_bound: Count | None = None
    latency_ns: Count | None = None
    discarded: Count | None = None
    samples_per_s: Amount | None = None


class Answered(Struct, frozen=True, kw_only=True):
    """What came of the measured requests: `ok` and `errors` add up to all of them.

    Attributes:
        began_ns: The first intended send, on the host's monotonic clock.
        duration_ns: From there to the last answer.
        ok: Answered with a status of 200 to 299.
        errors: The others by kind: `status 503`, `refused`, `reset`, `closed` (before the
            whole answer was there), `timeout`, `not HTTP`, or an error's name.
        latencies: HDR histogram of `ok` (of all for `client: ab`, which cannot tell);
            in the open shapes and `offline` from the intended time.
        lateness: HDR histogram of how long each request was held up by the generator
            itself: from when it was due and a connection free for it. None for ab.
        waited: Requests of the open shapes that were due with no connection free.
        window_ns: Length of a window.
        windows: From `began_ns` on, one after the other; none for ab.
        cpu_ns, wall_ns: CPU time of the generator while it measured, and that while.
        connections: Most that were open at once.
        opened: How often one was opened while measuring.
        mlperf: For MLPerf's shapes.
    """

    kind: Literal["answered"] = "answered"
    began_ns: Count
    duration_ns: Count
    ok: Count
    errors: dict[str, Count]
    latencies: str
    lateness: str | None
    waited: Count
    window_ns: Count
    windows: tuple[Window, ...]
    cpu_ns: Count
    wall_ns: Count
    connections: Count
    opened: Count
    mlperf: MlPerf | None = None


Message = Warmed | Answered | Failure

_KINDS: dict[str, type[Message]] = {"warmed": Warmed, "answered": Answered, "failure": Failure}


def encode(message: GeneratorOrder | Message) -> bytes:
    """Write a message as one line."""
    return json.dumps(to_builtins(message), separators=(",", ":")).encode() + b"\n"


def decode_order(line: bytes) -> GeneratorOrder:
    """Read the runner's order.

    Raises:
        WireError: The line is no order.
    """
    document = _document(line)
    try:
        return GeneratorOrder(**{**document, "traffic": Traffic(**document["traffic"])})
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"not a GeneratorOrder: {error}") from None


def decode_message(line: bytes) -> Message:
    """Read one of the generator's messages.

    Raises:
        WireError: The line is no message of this protocol.
    """
    document = _document(line)
    kind = _KINDS.get(str(document.get("kind")))
    if kind is None:
        raise WireError(f"not a message of a load generator: {line[:80]!r}")
    try:
        if kind is Answered:
            windows = tuple(Window(**window) for window in document["windows"])
            told = document.get("mlperf")
            mlperf = None if told is None else MlPerf(**told)
            return Answered(**{**document, "windows": windows, "mlperf": mlperf})
        return kind(**document)
    except (KeyError, TypeError) as error:
        raise WireError(f"not a {kind.__name__}: {error}") from None


def _document(line: bytes) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise WireError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise WireError(f"not a message of a load generator: {line[:80]!r}")
    return document
