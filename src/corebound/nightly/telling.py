"""A summary put where it is looked for: a file, or an address of a chat program or an alarm."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from corebound.errors import InputError, LaunchError, refusals_told
from corebound.store import whole

_TIMEOUT_S = 30.0


class _AsJson(urllib.request.BaseHandler):
    """Says that what is posted is JSON, before it is said to be a form."""

    handler_order = 0

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        """Told of each request before it is sent."""
        request.add_unredirected_header("Content-Type", "application/json")
        return request

    https_request = http_request


def write(text: str, file: Path) -> None:
    """Write a summary in one step; a reader sees the last one or this one.

    Raises:
        InputError: it cannot be written.
    """
    with refusals_told(
        "the summary cannot be written",
        where=file,
        mend="Name a file that can be written with --summary.",
    ):
        whole.put(file, f"{text}\n".encode())


def send(document: Mapping[str, Any], url: str) -> None:
    """POST a document as JSON. The address may be a secret and is told nobody, but its host.

    Raises:
        InputError: it is none of http or https.
        LaunchError: it could not be sent, or was refused.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InputError(
            what="this is no address that a summary can be sent to.",
            where="--webhook",
            mend="Write one that begins with https://.",
        )
    data = json.dumps(document).encode()
    try:
        # By way of a proxy, where the environment names one.
        with urllib.request.build_opener(_AsJson()).open(url, data, timeout=_TIMEOUT_S):
            pass
    except (urllib.error.URLError, OSError) as error:
        why = getattr(error, "reason", None) or error
        raise LaunchError(
            what=f"the summary could not be sent to {parts.hostname}: {why}.",
            where="--webhook",
            mend="Look whether the address is right and can be reached from here.",
        ) from None
