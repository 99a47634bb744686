"""Requests to language models: random prompts, and answers that arrive token by token.

The answers are server-sent events as of OpenAI's APIs of completions and chats, which llama-server,
vLLM and others implement: lines `data: {...}`, and `data: [DONE]` at the end.
"""

import json
import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from corebound.scenario.traffic import SPECIAL_TOKENS, Lengths, Streaming

Clock = Callable[[], int]

# No event of one token is as long.
MOST_LINE_BYTES = 1_000_000
# More than any context, where the user's own bodies say how many tokens there may be.
MOST_TOKENS = 100_000_000


def draw_lengths(lengths: Lengths, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Draw numbers of tokens, from 1 to `lengths.most`."""
    drawn = random.lognormal(math.log(lengths.median), lengths.spread, count)
    return np.clip(np.rint(drawn), 1, lengths.most).astype(np.int64)


_STREAMED = {"stream": True, "stream_options": {"include_usage": True}}


def _prompt(streaming: Streaming, tokens: int, random: np.random.Generator) -> dict[str, object]:
    if not streaming.is_chat:
        return {"prompt": random.integers(SPECIAL_TOKENS, streaming.vocabulary, tokens).tolist()}
    # A letter is one token in the usual vocabularies; a chat takes no numbers of tokens.
    text = " ".join(map(chr, random.integers(ord("a"), ord("z") + 1, tokens)))
    return {"messages": [{"role": "user", "content": text}]}


def streaming_body(body: bytes, streaming: Streaming) -> bytes:
    """A body of the user's own that asks for a stream.

    Raises:
        ValueError: it is no JSON object.
    """
    document = msgspec.json.decode(body, type=dict[str, Any])
    model = {} if streaming.model is None else {"model": streaming.model}
    return json.dumps(model | document | _STREAMED, separators=(",", ":")).encode()


def most_tokens(streaming: Streaming) -> int:
    """The most tokens that a right answer can have."""
    return MOST_TOKENS if streaming.has_bodies else streaming.output_tokens.most


def completion_bodies(streaming: Streaming, count: int, seed: int) -> list[bytes]:
    """The JSON bodies of requests, which are the same for the same seed.

    A prompt consists of random tokens, because words have different numbers of tokens in
    different models. Every answer has the length that was drawn for it (`ignore_eos`), and
    every prompt is computed in full (`cache_prompt`); servers that lack these ignore them.
    """
    random = np.random.default_rng(seed)
    prompt_tokens = draw_lengths(streaming.prompt_tokens, count, random)
    output_tokens = draw_lengths(streaming.output_tokens, count, random)
    model = {} if streaming.model is None else {"model": streaming.model}
    return [
        json.dumps(
            {
                **model,
                **_prompt(streaming, length, random),
                "max_tokens": output,
                "temperature": 0,
                **_STREAMED,
                "ignore_eos": True,
                "cache_prompt": False,
            },
            separators=(",", ":"),
        ).encode()
        for length, output in zip(prompt_tokens, output_tokens.tolist(), strict=True)
    ]


class TokenTimes(Struct, frozen=True, kw_only=True):
    """When the first and the last token of an answer arrived, and how many there were."""

    first_ns: int
    last_ns: int
    tokens: int

    @property
    def per_token_ns(self) -> float | None:
        """The mean time from one token to the next; None for a single token."""
        return (self.last_ns - self.first_ns) / (self.tokens - 1) if self.tokens > 1 else None


class _Delta(Struct):
    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None


class _Choice(Struct):
    text: str | None = None
    delta: _Delta | None = None
    finish_reason: str | None = None

    @property
    def written(self) -> str:
        """The text that the event adds."""
        if self.delta is None:
            return self.text or ""
        return (self.delta.reasoning_content or "") + (self.delta.content or "")

    @property
    def has_token(self) -> bool:
        """Whether the event is of a token.

        The last event may only say why the answer ended, and the first one of a chat who answers.
        A token may be without text, such as a part of a character.
        """
        is_first = self.delta is not None and self.delta.role is not None
        return bool(self.written) or (self.finish_reason is None and not is_first)


class _Usage(Struct):
    completion_tokens: int


class _Event(Struct):
    choices: tuple[_Choice, ...] = ()
    usage: _Usage | None = None
    error: object = None


_decode = msgspec.json.Decoder(_Event).decode
# The last is of a document that is nested thousands of levels deep.
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def streamed_text(answer: bytes) -> str | None:
    r"""The whole text of an answer; None if it is no stream of such events.

    >>> streamed_text(b'data: {"choices": [{"text": " a"}]}\n\ndata: [DONE]\n\n')
    ' a'
    """
    events = (
        line.removeprefix(b"data:").strip()
        for line in answer.split(b"\n")
        if line.startswith(b"data:")
    )
    try:
        choices = [_decode(event).choices for event in events if event != b"[DONE]"]
    except _UNREADABLE:
        return None
    return "".join(choice.written for each in choices for choice in each) if choices else None


class TokenStream:
    """Reads one answer incrementally, in pieces of any size."""

    def __init__(self, clock_ns: Clock, *, most_tokens: int) -> None:
        """Prepare to read an answer.

        Args:
            clock_ns: Read when a piece of the answer arrives.
            most_tokens: The most tokens that were asked for.
        """
        self._clock_ns = clock_ns
        self._most_tokens = most_tokens
        self._rest = b""
        self._error: str | None = None
        self._done = False
        self._first_ns = 0
        self._last_ns = 0
        self._events = 0
        self._reported: int | None = None

    def feed(self, data: bytes) -> None:
        """Read a piece of the answer, all of whose tokens arrived now."""
        now_ns = self._clock_ns()
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MOST_LINE_BYTES:
            self._rest = b""
            self._error = "not a stream"
        for line in lines:
            if line.startswith(b"data:"):
                self._read(line.removeprefix(b"data:").strip(), now_ns)

    def _read(self, document: bytes, now_ns: int) -> None:
        if document == b"[DONE]":
            self._done = True
            return
        try:
            event = _decode(document)
        except _UNREADABLE:
            self._error = "not a stream"
            return
        if event.error is not None:
            self._error = "stream error"
        if event.usage is not None:
            self._reported = event.usage.completion_tokens
            if self._reported > self._most_tokens:
                # A rate computed from it would be as wrong as the count.
                self._error = "wrong token count"
        if any(choice.has_token for choice in event.choices):
            if not self._events:
                self._first_ns = now_ns
            self._last_ns = now_ns
            self._events += 1

    @property
    def error(self) -> str | None:
        """Why the answer read so far does not count; None if it is complete."""
        if self._error is not None:
            return self._error
        if not self._done:
            return "cut off"
        return None if self.times else "no tokens"

    @property
    def times(self) -> TokenTimes | None:
        """The times of its tokens; None if there were none.

        Servers may send several tokens in one event, and then report their number.
        """
        tokens = self._events if self._reported is None else self._reported
        if not self._events or tokens < 1:
            return None
        return TokenTimes(first_ns=self._first_ns, last_ns=self._last_ns, tokens=tokens)
