"""Specifies how HTTP/1 responses are parsed, in any pieces, and which are refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.serving.generator.http import MalformedError, Response, answer_error, request

SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nans\r\nA;x=y\r\n\r\n\r\n\r\n\r\n\r\n\r\n0\r\nTrailer: t\r\n\r\n"
)
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + SIZED
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
REFUSED = b"HTTP/1.1 503 Full\r\ncontent-length:0\r\nconnection: Close\r\n\r\n"


@given(st.sampled_from([SIZED, CHUNKED, CONTINUED, EMPTY, REFUSED]), st.data())
def test_a_response_is_complete_with_its_last_byte_in_any_pieces(
    answer: bytes, data: st.DataObject
) -> None:
    cuts = data.draw(st.lists(st.integers(1, len(answer) - 1), unique=True).map(sorted))
    response = Response()

    pieces = [answer[a:b] for a, b in zip([0, *cuts], [*cuts, len(answer)], strict=True)]

    assert [response.feed(piece) for piece in pieces] == [False] * len(cuts) + [True]


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (b"HTTP/1.1 200 OK\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n", False),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", True),
    ],
)
def test_the_connection_is_kept_if_the_server_keeps_it(head: bytes, keeps: bool) -> None:
    response = Response()

    response.feed(head + b"Content-Length: 0\r\n\r\n")

    assert response.keeps is keeps


@given(st.binary())
def test_a_response_without_a_length_ends_with_its_connection(body: bytes) -> None:
    response = Response()

    assert not response.feed(b"HTTP/1.1 200 OK\r\n\r\n" + body)
    assert response.end()
    assert not response.keeps


@pytest.mark.parametrize("answer", [SIZED, CHUNKED])
def test_a_truncated_response_is_not_complete(answer: bytes) -> None:
    response = Response()

    response.feed(answer[:-1])

    assert not response.end()


def test_a_response_to_head_has_no_body() -> None:
    assert Response(to_head=True).feed(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n")


@pytest.mark.parametrize("headers", [b"", b"Upgrade: websocket\r\nConnection: Upgrade\r\n"])
def test_a_change_of_protocol_ends_the_response_and_the_connection(headers: bytes) -> None:
    response = Response()

    assert response.feed(b"HTTP/1.1 101 Switching Protocols\r\n" + headers + b"\r\n")
    assert (response.status, response.keeps) == (101, False)


@given(st.sampled_from([b"", b"HTTP/1.1 101 ", b"HTTP/1.1 200 OK\r\n"]), st.binary())
def test_arbitrary_data_is_read_or_refused(beginning: bytes, data: bytes) -> None:
    response = Response()

    with suppress(MalformedError):
        response.feed(beginning + data)
    assert not response.complete or response.status >= 101


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 999 What\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 70_000,
        b"HTTP/1.1 200 OK\r\n" + b"x" * 70_000,
        SIZED + b"!",
    ],
)
def test_invalid_responses_are_refused(answer: bytes) -> None:
    with pytest.raises(MalformedError):
        Response().feed(answer)


def test_a_request_has_host_and_content_length() -> None:
    written = request(
        method="POST", host="::1", port=80, path="/p", content_type="image/jpeg", body=b"12345"
    )

    head, _, body = written.partition(b"\r\n\r\n")
    assert head.splitlines()[:2] == [b"POST /p HTTP/1.1", b"Host: [::1]:80"]
    assert head.splitlines()[-2:] == [b"Content-Type: image/jpeg", b"Content-Length: 5"]
    assert body == b"12345"


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "", "/ü"])
def test_a_path_that_would_change_the_request_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="plain"):
        request(method="GET", host="h", port=80, path=path, content_type=None, body=None)


@pytest.mark.parametrize(
    ("status", "expected", "text", "error"),
    [
        (204, None, None, None),
        (404, None, None, "status 404"),
        (404, 404, None, None),
        (200, 404, None, "status 200"),
        (200, None, "ok é", None),
        (200, None, "no", "wrong answer"),
    ],
)
def test_an_answer_is_a_success_if_it_is_as_expected(
    status: int, expected: int | None, text: str | None, error: str | None
) -> None:
    assert answer_error(status, "all ok é".encode(), expected=expected, text=text) == error


def test_headers_of_the_users_own_replace_those_of_the_generator() -> None:
    sent = request(
        method="GET",
        host="10.0.0.5",
        port=80,
        path="/",
        content_type=None,
        body=None,
        headers={"host": "example.org", "X-Key": "1"},
        keeps_connection=False,
    )

    lines = sent.decode().split("\r\n")
    assert [line for line in lines if line.lower().startswith("host")] == ["Host: example.org"]
    assert {"X-Key: 1", "Connection: close"} <= {*lines}
