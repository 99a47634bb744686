"""`corebound report --serve`: the site on this machine alone, made anew when records change."""

from __future__ import annotations

import gc
import http
import http.server
import sys
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from rich.text import Text

from corebound.cli.output.terminal import Console
from corebound.errors import CoreboundError, InputError

LOOPBACK = "127.0.0.1"
# Records are appended to as launches end: more often than this nobody reads a page.
_LOOK_EVERY_S = 1.0
_OURS = {LOOPBACK, "localhost", "[::1]"}


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the site, to who asks for this machine by a name that is its own."""

    def send_head(self) -> BytesIO | BinaryIO | None:
        """Refuse a page from elsewhere that had its own name point here."""
        name = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if name not in _OURS:
            self.send_error(http.HTTPStatus.FORBIDDEN, "This site is served to its own host only")
            return None
        try:
            return super().send_head()
        except ValueError:  # no file has such a name, as with a NUL in it
            self.send_error(http.HTTPStatus.NOT_FOUND, "File not found")
            return None

    def end_headers(self) -> None:
        """Ask every time: the site changes under the reader."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""


class _Server(http.server.ThreadingHTTPServer):
    """Serves each request in a thread of its own."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of who hung up before the answer was through."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def serve(
    folder: Path,
    watched: Iterable[Path],
    rebuild: Callable[[], object],
    console: Console,
    *,
    port: int,
    look_every_s: float = _LOOK_EVERY_S,
) -> None:
    """Serve a folder until interrupted, and rebuild it when what it is made of changes.

    Args:
        folder: The site.
        watched: Files, and folders with all that is in them, that it is made of.
        rebuild: Makes the site anew; what of it is the user's to mend is told.
        console: Where to tell.
        port: On the loopback; 0 takes any that is free.
        look_every_s: How long between looks at the files.

    Raises:
        InputError: the port is taken.
    """
    paths = tuple(watched)
    handler = partial(_Handler, directory=str(folder))
    try:
        server = _Server((LOOPBACK, port), handler)
    except OSError as error:
        raise InputError(
            what=f"the site cannot be served: {error.strerror}.",
            where=f"{LOOPBACK}:{port}",
            mend="Choose another port with --port, or 0 for any that is free.",
        ) from error
    with server:
        thread = threading.Thread(target=server.serve_forever, name="site", daemon=True)
        thread.start()
        console.print(Text(f"http://{LOOPBACK}:{server.server_port}/  (Ctrl-C ends it)"))
        try:
            _watch(paths, rebuild, console, look_every_s)
        except KeyboardInterrupt:
            console.print("ended")
        finally:
            server.shutdown()
            thread.join()


def _watch(
    paths: tuple[Path, ...], rebuild: Callable[[], object], console: Console, look_every_s: float
) -> None:
    seen = state_of(paths)
    while True:
        time.sleep(look_every_s)
        now = state_of(paths)
        if now == seen:
            continue
        seen = now
        began_s = time.monotonic()
        try:
            rebuild()
        except CoreboundError as error:
            console.print(Text(str(error)))
        else:
            console.print(Text(f"made anew in {time.monotonic() - began_s:.1f} s"))
        # A process that lives long cannot do without.
        gc.collect()


def state_of(paths: Iterable[Path]) -> frozenset[tuple[str, int, int]]:
    """Name, size and time of change of every file; what goes while it is looked at is left out."""
    found = set()
    for path in paths:
        for file in (path, *path.rglob("*")):
            # What begins with a point is being written; `cache` is our memory of what was read.
            parts = file.relative_to(path).parts
            if parts[:1] == ("cache",) or any(part.startswith(".") for part in parts):
                continue
            try:
                told = file.stat()
            except OSError:
                continue
            if file.is_file():
                found.add((str(file), told.st_size, told.st_mtime_ns))
    return frozenset(found)
