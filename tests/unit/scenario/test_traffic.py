"""What a load generator is told and says: one line each, and nothing else passes."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corebound.scenario import traffic
from corebound.scenario.traffic import Lengths, Message, MlPerf, Shape, Streamed, Warmed, Window
from corebound.stats import latency
from corebound.worker import protocol
from support.build import OF_A_SHAPE, a_streaming, a_traffic, an_answered, an_order

# The largest number that records may have.
MOST = 1 << 60
counts = st.dictionaries(st.text(), st.integers(1, MOST))
windows = st.builds(
    Window,
    ok=st.integers(0, MOST),
    errors=st.integers(0, MOST),
    worst_ns=st.none() | st.integers(0, MOST),
)
mlperfs = st.builds(
    MlPerf,
    queries=st.integers(1, MOST),
    percentile=st.none() | st.floats(0, 1),
    needed=st.none() | st.integers(1, MOST),
    satisfied=st.booleans(),
    latency_ns=st.none() | st.integers(0, MOST),
)
messages = st.one_of(
    st.builds(Warmed, ok=st.integers(0, MOST), errors=counts),
    st.builds(
        an_answered,
        errors=counts,
        lateness=st.none() | st.text(),
        windows=st.lists(windows).map(tuple),
        mlperf=st.none() | mlperfs,
    ),
    st.builds(protocol.Failure, during=st.text(), what=st.text(), fix=st.none() | st.text()),
)


@given(messages)
def test_a_message_is_one_line_and_round_trips(message: Message) -> None:
    line = traffic.encode(message)

    assert line.count(b"\n") == 1
    assert traffic.decode_message(line) == message


@pytest.mark.parametrize("shape", [*OF_A_SHAPE, "stream"])
def test_an_order_of_any_shape_and_of_a_stream_round_trips(shape: Any) -> None:
    of_a_stream = a_traffic(streaming=a_streaming(first_token_bound_ms=200.0))
    order = an_order(traffic=of_a_stream if shape == "stream" else a_traffic(shape=shape))

    assert traffic.decode_order(traffic.encode(order)) == order


@given(st.binary())
@example(b"[]")
@example(b"{}")
@example(b'{"kind":"answered"}')
@example(b'{"kind":["warmed"]}')
@example(b'{"traffic":{}}')
def test_other_bytes_and_other_json_are_rejected(line: bytes) -> None:
    with pytest.raises(protocol.WireError):
        traffic.decode_message(line)
    with pytest.raises(protocol.WireError):
        traffic.decode_order(line)


@pytest.mark.parametrize(
    ("shape", "change"),
    [
        ("closed", {"concurrency": None}),
        ("closed", {"concurrency": 0}),
        ("closed", {"rate_per_s": 5.0}),
        ("closed", {"requests": 0}),
        ("closed", {"timeout_s": 0.0}),
        ("constant", {"rate_per_s": 0.0}),
        ("constant", {"client": "ab"}),
        ("multi-stream", {"samples_a_query": 3}),
        ("server", {"bound_ms": None}),
    ],
)
def test_invalid_traffic_cannot_be_constructed(shape: Shape, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"traffic|shape|ab sends"):
        a_traffic(shape=shape, **change)


def test_an_order_of_an_unknown_shape_is_rejected() -> None:
    line = traffic.encode(an_order()).replace(b'"closed"', b'"tidal"')

    with pytest.raises(protocol.WireError, match="tidal"):
        traffic.decode_order(line)


def test_the_tokens_of_an_answer_round_trip() -> None:
    histogram = latency.encode([1_000_000])
    answered = an_answered(
        streamed=Streamed(tokens=8, first_token=histogram, per_token=histogram, good=1)
    )

    assert traffic.decode_message(traffic.encode(answered)) == answered


@pytest.mark.parametrize(
    "lengths",
    [{"median": 0, "most": 1}, {"median": 2, "most": 1}, {"median": 1, "most": 1, "spread": -1.0}],
)
def test_lengths_are_possible_ones(lengths: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="length"):
        Lengths(**lengths)


def test_a_stream_needs_a_vocabulary_and_a_client_that_reads_it() -> None:
    with pytest.raises(ValueError, match="special"):
        a_streaming(vocabulary=3)
    with pytest.raises(ValueError, match="ab cannot"):
        a_traffic(client="ab", streaming=a_streaming())
