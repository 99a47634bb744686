"""Prompts of language models are seeded; their streams are timed token by token."""

import itertools
import json
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.scenario.traffic import Lengths
from corebound.serving.generator.streaming import (
    MOST_LINE_BYTES,
    TokenStream,
    TokenTimes,
    completion_bodies,
    draw_lengths,
    streamed_text,
    streaming_body,
)
from support.build import a_streaming
from support.known import known

DONE = b"data: [DONE]\n\n"
LAST = b'data: {"choices": [{"text": "", "finish_reason": "length"}]}\n\n'
USAGE = b'data: {"choices": [], "usage": {"completion_tokens": 7}}\n\n'


def token(text: str = "a") -> bytes:
    document = {"choices": [{"index": 0, "text": text, "finish_reason": None}], "usage": None}
    return f"data: {json.dumps(document)}\n\n".encode()


def read(pieces: Sequence[bytes]) -> TokenStream:
    """Read pieces that arrive at 100, 110, 120, ... ns."""
    stream = TokenStream(itertools.count(100, 10).__next__, most_tokens=7)
    for piece in pieces:
        stream.feed(piece)
    return stream


def test_tokens_have_the_times_of_the_pieces_they_arrived_in() -> None:
    stream = read([token(), token(), token(), LAST + DONE])

    assert stream.error is None
    assert stream.times == TokenTimes(first_ns=100, last_ns=120, tokens=3)
    assert stream.times.per_token_ns == 10


def test_a_token_that_is_part_of_a_character_has_no_text() -> None:
    assert read([token(""), token("é"), DONE]).times == TokenTimes(
        first_ns=100, last_ns=110, tokens=2
    )


def test_a_server_that_groups_tokens_reports_their_number() -> None:
    stream = read([token("abc"), token("def"), USAGE + DONE])

    # 10 ns from the first of 7 tokens to the last.
    assert stream.times == TokenTimes(first_ns=100, last_ns=110, tokens=7)
    assert stream.times.per_token_ns == pytest.approx(10 / 6)


ANSWER = b": comment\r\n\r\n" + token("é\n") + token().replace(b"\n", b"\r\n") + LAST + USAGE + DONE


@given(st.lists(st.integers(1, len(ANSWER) - 1), unique=True).map(sorted))
def test_a_stream_may_arrive_in_any_pieces(cuts: list[int]) -> None:
    pieces = [ANSWER[a:b] for a, b in zip([0, *cuts], [*cuts, len(ANSWER)], strict=True)]

    stream = read(pieces)

    assert stream.error is None
    assert known(stream.times).tokens == 7


def chat(**delta: str) -> bytes:
    return f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n".encode()


def test_the_event_that_says_who_answers_in_a_chat_is_no_token() -> None:
    first = chat(role="assistant", content="")
    last = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'

    stream = read([first, chat(content="a"), chat(reasoning_content="b"), last + DONE])

    assert stream.error is None
    assert stream.times == TokenTimes(first_ns=110, last_ns=120, tokens=2)
    assert streamed_text(first + chat(content=" a") + chat(content="b") + DONE) == " ab"


def test_a_chat_is_asked_with_a_message_of_as_many_letters_as_tokens() -> None:
    lengths = Lengths(median=12, most=12)
    streaming = a_streaming(is_chat=True, model="m", prompt_tokens=lengths)

    first, second = map(json.loads, completion_bodies(streaming, 2, seed=1))

    (message,) = first["messages"]
    assert (message["role"], len(message["content"].split())) == ("user", 12)
    assert (first["model"], first["stream"]) == ("m", True)
    assert second["messages"] != first["messages"]


def test_a_body_of_the_users_own_is_asked_to_stream_and_keeps_its_model() -> None:
    body = streaming_body(b'{"model": "own", "max_tokens": 3}', a_streaming(model="other"))

    assert json.loads(body) == {
        "model": "own",
        "max_tokens": 3,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    with pytest.raises(ValueError, match="object"):
        streaming_body(b"[1]", a_streaming())


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        ([token(), token()], "cut off"),
        ([], "cut off"),
        ([b'data: {"error": {"message": "no memory"}}\n\n', DONE], "stream error"),
        ([b"data: {\n\n", DONE], "not a stream"),
        ([b'data: {"choices": 3}\n\n', DONE], "not a stream"),
        ([b"data: \xff\n\n", DONE], "not a stream"),
        ([b"x" * (MOST_LINE_BYTES + 1)], "not a stream"),
        ([b'data: {"error": ' + b"[" * 9999 + b"]" * 9999 + b"}\n\n", DONE], "not a stream"),
        ([token(), b'data: {"usage": {"completion_tokens": 0}}\n\n', DONE], "no tokens"),
    ],
)
def test_an_incomplete_stream_is_an_error(pieces: list[bytes], error: str) -> None:
    assert read(pieces).error == error


@given(st.integers())
def test_a_server_cannot_report_more_tokens_than_were_asked_for(reported: int) -> None:
    usage = f'data: {{"usage": {{"completion_tokens": {reported}}}}}\n\n'.encode()

    assert (read([token(), usage, DONE]).error is None) == (1 <= reported <= 7)


@given(st.lists(st.binary(max_size=60)))
def test_arbitrary_data_is_an_error_and_raises_nothing(pieces: list[bytes]) -> None:
    assert read([b"data:", *pieces]).error is not None


def test_the_same_seed_gives_the_same_requests_and_another_gives_others() -> None:
    bodies = completion_bodies(a_streaming(), 20, 1)

    assert bodies == completion_bodies(a_streaming(), 20, 1)
    assert bodies != completion_bodies(a_streaming(), 20, 2)
    assert len(set(bodies)) == 20


def test_a_request_asks_for_a_stream_of_exactly_its_length() -> None:
    lengths = Lengths(median=5, most=9)
    streaming = a_streaming(prompt_tokens=lengths, output_tokens=lengths, model="m", vocabulary=7)

    document = json.loads(completion_bodies(streaming, 1, 1)[0])

    assert len(document["prompt"]) == document["max_tokens"] == 5
    assert set(document["prompt"]) <= {3, 4, 5, 6}
    assert document["stream"] is document["ignore_eos"] is True
    assert (document["model"], document["temperature"]) == ("m", 0)


def test_lengths_have_the_median_and_the_spread_asked_for() -> None:
    drawn = draw_lengths(
        Lengths(median=200, spread=0.5, most=100_000), 10_000, np.random.default_rng(1)
    )

    # The median of 10,000 has a standard error of 1.25 * 0.5 / 100 = 0.6 %, the deviation 0.7 %.
    assert np.median(drawn) == pytest.approx(200, rel=0.04)
    assert np.log(drawn).std() == pytest.approx(0.5, rel=0.04)


@given(st.integers(1, 100), st.floats(0, 3))
def test_lengths_are_within_their_limits(median: int, spread: float) -> None:
    lengths = Lengths(median=median, spread=spread, most=100)

    drawn = draw_lengths(lengths, 50, np.random.default_rng(1))

    assert drawn.min() >= 1
    assert drawn.max() <= 100
