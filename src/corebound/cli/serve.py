"""`corebound report --serve`: serve the site locally and rebuild it when records change."""

import gc
import http
import http.server
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from corebound.errors import CoreboundError, InputError
from corebound.workflow.projects import Notify
from corebound.workflow.report import state_of

LOOPBACK = "127.0.0.1"
# Launches append to the records as they end; readers do not need more frequent updates.
_POLL_INTERVAL_S = 1.0
_LOCAL_NAMES = {LOOPBACK, "localhost", "[::1]"}


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site's files to clients that address this machine by a local name."""

    def send_head(self) -> BytesIO | BinaryIO | None:
        """Reject requests from foreign pages that resolve their own name to this machine."""
        name = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if name not in _LOCAL_NAMES:
            self.send_error(http.HTTPStatus.FORBIDDEN, "This site is served to its own host only")
            return None
        try:
            return super().send_head()
        except ValueError:  # an impossible file name, for example with a NUL
            self.send_error(http.HTTPStatus.NOT_FOUND, "File not found")
            return None

    def end_headers(self) -> None:
        """Disable caching without validation, because the site changes."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Do not log requests."""


class _Server(http.server.ThreadingHTTPServer):
    """Handles each request in a thread of its own."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do not report clients that disconnect early."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def serve_site(
    folder: Path,
    watched: tuple[Path, ...],
    rebuild: Callable[[], object],
    notify: Notify,
    *,
    port: int,
) -> None:
    """Serve a folder until interrupted, and rebuild it when its sources change.

    Args:
        watched: The sources: files, and folders with their contents.
        rebuild: Rebuilds the site; errors that the user can fix are printed.
        port: The port on the loopback interface; 0 picks a free one.

    Raises:
        InputError: The port is in use.
    """
    handler = partial(_Handler, directory=str(folder))
    try:
        server = _Server((LOOPBACK, port), handler)
    except OSError as error:
        raise InputError(
            what=f"the site cannot be served: {error.strerror}.",
            where=f"{LOOPBACK}:{port}",
            fix="Choose another port with --port, or 0 for any that is free.",
        ) from error
    with server:
        thread = threading.Thread(target=server.serve_forever, name="site", daemon=True)
        thread.start()
        notify(f"Serving http://{LOOPBACK}:{server.server_port}/ (press Ctrl-C to stop)")
        try:
            _watch(watched, rebuild, notify)
        except KeyboardInterrupt:
            notify("Stopped.")
        finally:
            server.shutdown()
            thread.join()


def _watch(paths: tuple[Path, ...], rebuild: Callable[[], object], notify: Notify) -> None:
    previous = state_of(paths)
    while True:
        time.sleep(_POLL_INTERVAL_S)
        current = state_of(paths)
        if current == previous:
            continue
        previous = current
        started_s = time.monotonic()
        try:
            rebuild()
        except CoreboundError as error:
            notify(str(error))
        else:
            notify(f"Updated in {time.monotonic() - started_s:.1f} s")
        # A long-lived process needs garbage collection.
        gc.collect()
