"""The messages between the runner and a load generator, one JSON document per line.

The runner writes one `GeneratorOrder`. The generator imports its modules, opens its
connections, sends the warm-up requests and writes `warmed`. It then waits for
`worker.protocol.GO`, measures and writes `answered`. It stays alive until the runner closes
the stream of orders, so that the runner can inspect the process one last time. At any point
it may write `failure` instead.

Latencies travel as HDR histograms in their own encoding (version 2, base64), in
microseconds with 3 significant digits: `stats.latency` reads and merges them.
"""

import json
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from msgspec import Struct, convert, to_builtins

from corebound.bounded_numbers import Amount, Count, Positive, Share, Signed
from corebound.worker.protocol import Failure, WireError, fields

# `closed` keeps `concurrency` requests in flight, as ApacheBench does. `constant` and
# `poisson` send at a fixed rate, however fast the server answers. `rate-search` sends like
# `poisson` at several rates, one after the other. The rest are MLPerf's.
Shape = Literal[
    "closed",
    "constant",
    "poisson",
    "single-stream",
    "multi-stream",
    "server",
    "offline",
    "rate-search",
]
Client = Literal["corebound", "ab"]

# By convention, the tokens 0 to 2 are the unknown one and those that begin and end a text.
SPECIAL_TOKENS = 3

# The shapes that send on a schedule; their latencies count from the intended send time.
OPEN_SHAPES: tuple[Shape, ...] = ("constant", "poisson", "server")
# The shapes with a latency bound.
BOUNDED_SHAPES: tuple[Shape, ...] = ("server", "rate-search")


class Lengths(Struct, frozen=True, kw_only=True):
    """Numbers of tokens with a log-normal distribution, as those of real prompts and answers.

    Attributes:
        spread: The standard deviation of the logarithm; 0 makes all equal.
        most: Longer ones are cut to this.
    """

    median: Count
    spread: Amount = 0.0
    most: Count

    def __post_init__(self) -> None:
        if not 1 <= self.median <= self.most or self.spread < 0:
            raise ValueError("a median length lies between 1 and the longest")


class Streaming(Struct, frozen=True, kw_only=True):
    """Requests to a language model that streams its answer, as OpenAI's completions API does.

    Each request has a prompt of its own, drawn with the traffic's seed, unless it has bodies.

    Attributes:
        prompt_tokens, output_tokens: The lengths of prompts and of answers.
        vocabulary: The number of different tokens that prompts are drawn from.
        model: The name of the model to ask for; None sends no name.
        first_token_bound_ms, per_token_bound_ms: An answer within both counts as good. None
            bounds nothing.
        is_chat: Whether it is asked by OpenAI's chat API.
        has_bodies: Whether the order has the bodies; lengths and vocabulary then say nothing.
    """

    prompt_tokens: Lengths
    output_tokens: Lengths
    vocabulary: Count
    model: str | None = None
    first_token_bound_ms: Positive | None = None
    per_token_bound_ms: Positive | None = None
    is_chat: bool = False
    has_bodies: bool = False

    def __post_init__(self) -> None:
        if self.vocabulary <= SPECIAL_TOKENS:
            raise ValueError("a vocabulary has more than the special tokens")


class Traffic(Struct, frozen=True, kw_only=True):
    """The requests sent to a server in one launch.

    Attributes:
        shape: When the next request is sent.
        requests: Number of measured requests; a multiple of `samples_a_query`.
        warmup_requests: Number of requests sent before those; they are not measured.
        concurrency: Requests in flight at once; `closed` only.
        rate_per_s: Intended requests per second; the open shapes only.
        samples_a_query: Requests per query; `multi-stream` only.
        bound_ms: Latency bound of a request; `server` and `rate-search` only.
        least_per_s: `rate-search` ends once no rate from this one on can be within the bound; None:
            it searches for any.
        search_s: `rate-search` ends after this time with what it has found, in seconds; None: once
            its requests are sent.
        client: The program that sends them; `ab` with `closed` only.
        seed: Seed of the arrival times, if they are random.
        timeout_s: A request that takes longer than this counts as an error. The time counts
            from the intended send time in the open shapes, from the actual one in the others.
        streaming: What to ask of a language model that streams; None sends the order's body.
    """

    shape: Shape
    requests: Count
    warmup_requests: Count
    concurrency: Count | None = None
    rate_per_s: Positive | None = None
    samples_a_query: Count | None = None
    bound_ms: Positive | None = None
    least_per_s: Positive | None = None
    search_s: Positive | None = None
    client: Client = "corebound"
    seed: Signed = 0
    timeout_s: Positive = 300.0
    streaming: Streaming | None = None

    def __post_init__(self) -> None:
        if self.shape not in get_args(Shape) or self.client not in get_args(Client):
            raise ValueError("a traffic's shape and client are known ones")
        if self.requests < 1 or self.warmup_requests < 0 or not self.timeout_s > 0:
            raise ValueError("a traffic has requests, and time for them")
        _matches("concurrency", self.concurrency, belongs=self.shape == "closed")
        _matches("rate_per_s", self.rate_per_s, belongs=self.shape in OPEN_SHAPES)
        _matches("samples_a_query", self.samples_a_query, belongs=self.shape == "multi-stream")
        _matches("bound_ms", self.bound_ms, belongs=self.shape in BOUNDED_SHAPES)
        if (self.least_per_s or self.search_s) and self.shape != "rate-search":
            raise ValueError("only a search for a rate has a least one, and a time")
        if self.samples_a_query and self.requests % self.samples_a_query:
            raise ValueError("a traffic's queries are whole")
        if self.client == "ab" and self.shape != "closed":
            raise ValueError("ab sends in a closed loop only")
        if self.client == "ab" and self.streaming is not None:
            raise ValueError("ab cannot read a stream")


def _matches(name: str, value: float | None, *, belongs: bool) -> None:
    if belongs != (value is not None) or (value is not None and not value > 0):
        raise ValueError(f"`{name}` is above 0 where its shape has it, and absent elsewhere")


class GeneratorOrder(Struct, frozen=True, kw_only=True):
    """The order to one load generator.

    Attributes:
        host, port: The server's address; a host name is resolved once.
        path: Path and query of the URL, such as `/predictions/resnet50`.
        method: `GET`, `POST` or another.
        content_type: Content type of the body; None sends no such header.
        headers: Other headers, by name.
        body_files: The files that requests send as their bodies, in turn; without any, they have
            no body.
        status: The status of a success; None: any of 200 to 299.
        answer_text: A text that the body of a success contains; None: any body.
        keeps_connections: Whether a connection carries several requests.
        connections: Maximum number of open connections, in the shapes that do not define
            it themselves: the open ones and `offline`. The time that a request waits for a
            free connection is part of its latency.
    """

    traffic: Traffic
    host: str
    port: int
    path: str
    method: str = "POST"
    content_type: str | None = None
    headers: dict[str, str] = {}
    body_files: tuple[str, ...] = ()
    status: Count | None = None
    answer_text: str | None = None
    keeps_connections: bool = True
    connections: int = 256


class Warmed(Struct, frozen=True, kw_only=True):
    """The warm-up requests are complete; the generator waits for `GO`.

    Attributes:
        ok: Requests answered with a status of 200 to 299.
        errors: The other requests, counted by kind as in `Answered`.
    """

    kind: Literal["warmed"] = "warmed"
    ok: Count
    errors: dict[str, Count]


class Window(Struct, frozen=True, kw_only=True):
    """The requests that ended within one time window.

    `worst_ns` is the longest latency among `ok`, None if `ok` is 0.
    """

    ok: Count
    errors: Count
    worst_ns: Count | None


class MlPerf(Struct, frozen=True, kw_only=True):
    """A launch judged by MLPerf's rules; an error counts as a query of infinite latency.

    Attributes:
        queries: Number of queries. A query is several requests in `multi-stream`, and all
            requests in `offline`.
        percentile: The share of queries that the rule applies to; None for `offline`.
        needed: The minimum number of queries that early stopping requires, given the
            results; None for `offline`.
        satisfied: Whether there were enough queries and, for `server`, few enough over the
            bound.
        over_bound: Queries that took longer than `bound_ms`; `server` only.
        latency_ns: Early stopping's estimate of the percentile, an upper bound with a
            confidence of 0.99; the streams only, and only with enough queries.
        discarded: Queries above that estimate.
        samples_per_s: Requests answered per second; `offline` only.
    """

    queries: Count
    percentile: Share | None
    needed: Count | None
    satisfied: bool
    over_bound: Count | None = None
    latency_ns: Count | None = None
    discarded: Count | None = None
    samples_per_s: Amount | None = None


class RateTrial(Struct, frozen=True, kw_only=True):
    """The requests that `rate-search` sent at one rate.

    `over` of them took longer than the bound, or failed.
    """

    rate_per_s: Positive
    requests: Count
    over: Count


class HighestRate(Struct, frozen=True, kw_only=True):
    """The result of `rate-search`.

    Attributes:
        within_per_s: The highest rate at which 99 % of requests stayed within the bound; None if
            there was none.
        over_per_s: The lowest rate at which they did not; None if there was none.
        trials: All trials, in their order.
        capacity_per_s: The throughput of the saturated server; None in records that lack it.
    """

    within_per_s: Positive | None
    over_per_s: Positive | None
    trials: tuple[RateTrial, ...]
    capacity_per_s: Positive | None = None


class Streamed(Struct, frozen=True, kw_only=True):
    """The tokens of the successful requests to a language model.

    Attributes:
        tokens: The number of tokens generated, in all.
        first_token: HDR histogram of the time to the first token, which counts from where the
            latency does.
        per_token: HDR histogram of each answer's mean time from one token to the next;
            without answers of one token.
        good: Successful requests within all bounds of `Streaming`.
    """

    tokens: Count
    first_token: str
    per_token: str
    good: Count


class SampledRequest(NamedTuple):
    """One request, in microseconds since `Answered.began_ns`.

    It arrived when its latency begins. `first_token_us` is None if its answer is no stream.
    """

    arrived_us: Signed
    ended_us: Signed
    first_token_us: Signed | None
    is_ok: bool


class Answered(Struct, frozen=True, kw_only=True):
    """The results of the measured requests; `ok` and `errors` add up to their number.

    Attributes:
        began_ns: The first intended send time, on the host's monotonic clock.
        duration_ns: Time from `began_ns` to the last answer.
        ok: Requests answered as expected: by default with a status of 200 to 299.
        errors: The other requests by kind: `status 503`, `wrong answer`, `refused`, `reset`,
            `closed` (before the answer was complete), `timeout`, `not HTTP`, or an error's name.
        latencies: HDR histogram of `ok` (of all requests for `client: ab`, which cannot
            separate them). In the open shapes and `offline`, counted from the intended time.
            Of `rate-search`, only the trials at the highest rate within the bound.
        lateness: HDR histogram of the delay that the generator itself added to each request,
            counted from when it was due and had a free connection. None for ab.
        waited: Requests of the open shapes that were due when no connection was free.
        windows: Consecutive windows from `began_ns` on; none for ab.
        cpu_ns, wall_ns: The generator's CPU time and elapsed time while it measured.
        connections: Maximum number of connections open at once.
        opened: Number of connections opened while measuring.
        mlperf: MLPerf's judgement; only for MLPerf's shapes.
        search: The highest rate within the bound; only for `rate-search`.
        streamed: The tokens, if the traffic is `streaming`. Streams have more kinds of errors:
            `not a stream`, `stream error` (it reports one), `cut off` (it has no end),
            `no tokens` and `wrong token count` (it reports more than were asked for).
        sampled: The first requests, in the order of their arrival: all that arrived before
            the last of them. Of `rate-search`, the first of those in `latencies`. Empty for ab, for
            `offline`, where all arrive at once, and in older records.
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
    search: HighestRate | None = None
    streamed: Streamed | None = None
    sampled: tuple[SampledRequest, ...] = ()


Message = Warmed | Answered | Failure
T = TypeVar("T")


def encode(message: GeneratorOrder | Message) -> bytes:
    """Write a message as one line."""
    return json.dumps(to_builtins(message, enc_hook=fields), separators=(",", ":")).encode() + b"\n"


def decode_order(line: bytes) -> GeneratorOrder:
    """Read the runner's order.

    Raises:
        WireError: The line is not an order.
    """
    return _convert(_document(line), GeneratorOrder)


def decode_message(line: bytes) -> Message:
    """Read one of the generator's messages.

    Raises:
        WireError: The line is not a message of this protocol.
    """
    document = _document(line)
    match document.get("kind"):
        case "warmed":
            return _convert(document, Warmed)
        case "answered":
            return _convert(document, Answered)
        case "failure":
            return _convert(document, Failure)
    raise WireError(f"not a message of a load generator: {line[:80]!r}")


def _convert(document: dict[str, Any], kind: type[T]) -> T:
    """The message of a document; one of the worker's own protocol has no types to check."""
    try:
        return kind(**document) if issubclass(kind, Failure) else convert(document, kind)
    except (TypeError, ValueError) as error:
        raise WireError(f"not a {kind.__name__}: {error}") from None


def _document(line: bytes) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise WireError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise WireError(f"not a message of a load generator: {line[:80]!r}")
    return document
