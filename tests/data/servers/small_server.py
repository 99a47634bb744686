"""A small HTTP server for tests: says its port, then answers until it is ended.

It may be given the number of a socket to listen on.

Paths: `/ok`, `/chunked`, `/status/503`, `/hang` (no answer), `/drop` (closes without an
answer), `/garbage` (no HTTP), `/once` (closes after the answer), `/mixed` (every fourth a
503). `?ms=5` after any of them: answer so much later. `?queue=1`: one at a time.

`/v1/completions?first_ms=100&each_ms=20` streams as many tokens as asked for, an event each, at
these intervals; `&cut=1`: without the event that ends the stream.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import sys
from urllib.parse import parse_qs, urlsplit

ONE_AT_A_TIME = asyncio.Lock()
COUNT = itertools.count(1)
# ab speaks HTTP/1.0 and waits for the end of the connection without this.
KEPT = "Connection: keep-alive"


def head(status: int, *fields: str) -> bytes:
    return ("\r\n".join((f"HTTP/1.1 {status} Said", *fields)) + "\r\n\r\n").encode()


def sized(status: int, *fields: str) -> bytes:
    return head(status, "Content-Length: 6", *fields) + b"answer"


async def receive(reader: asyncio.StreamReader) -> tuple[str, bool, bytes]:
    """The request's path, whether the client wants the connection kept, and the body."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines[1:] if line)
    body = await reader.readexactly(int(fields.get("content-length", "0")))
    keeps = "http/1.1" in lines[0] or fields.get("connection") == "keep-alive"
    return lines[0].split()[1], keeps, body


async def work(query: dict[str, list[str]]) -> None:
    seconds = float(query.get("ms", ["0"])[0]) / 1000
    if "queue" in query:
        async with ONE_AT_A_TIME:
            await asyncio.sleep(seconds)
    elif seconds:
        await asyncio.sleep(seconds)


def answer(path: str) -> bytes:
    match path.split("/")[1:]:
        case ["chunked"]:
            return (
                head(200, KEPT, "Transfer-Encoding: chunked")
                + b"3\r\nans\r\n3;x=y\r\nwer\r\n0\r\n\r\n"
            )
        case ["status", status]:
            return sized(int(status), KEPT)
        case ["mixed"]:
            return sized(200 if next(COUNT) % 4 else 503, KEPT)
        case ["garbage"]:
            return b"SSH-2.0-no\r\n"
        case ["once"]:
            return sized(200, "Connection: close")
        case _:
            return sized(200, KEPT)


async def stream(
    writer: asyncio.StreamWriter, asked: dict[str, object], query: dict[str, list[str]]
) -> None:
    def write(document: str) -> None:
        event = f"data: {document}\n\n".encode()
        writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")

    tokens = asked["max_tokens"]
    assert isinstance(tokens, int)
    writer.write(head(200, KEPT, "Transfer-Encoding: chunked", "Content-Type: text/event-stream"))
    for number in range(tokens):
        await asyncio.sleep(float(query["each_ms" if number else "first_ms"][0]) / 1000)
        write(json.dumps({"choices": [{"text": f" {number}", "finish_reason": None}]}))
    write(json.dumps({"choices": [{"text": "", "finish_reason": "length"}]}))
    if "cut" not in query:
        write("[DONE]")
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            url, keeps, body = await receive(reader)
            parts = urlsplit(url)
            if parts.path == "/v1/completions":
                await stream(writer, json.loads(body), parse_qs(parts.query))
                continue
            await work(parse_qs(parts.query))
            if parts.path == "/hang":
                await asyncio.sleep(3600)
            if parts.path == "/drop":
                return
            writer.write(answer(parts.path))
            await writer.drain()
            if not keeps or parts.path == "/once":
                return
    except (asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        writer.close()


async def main() -> None:
    given = socket.socket(fileno=int(sys.argv[1])) if len(sys.argv) > 1 else None
    listening = given or socket.create_server(("127.0.0.1", 0))
    server = await asyncio.start_server(serve, sock=listening, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
