"""A summary put where it is looked for: a file, or an address of a chat program or an alarm."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from corebound.errors import InputError, LaunchError

_TIMEOUT_S = 30.0


def write(text: str, file: Path) -> None:
    """Write a summary in one step; a reader sees the last one or this one.

    Raises:
        InputError: it cannot be written.
    """
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(f"{text}\n", encoding="utf-8")
        fresh.replace(file)
    except OSError as error:
        raise InputError(
            what=f"the summary cannot be written: {error.strerror}.",
            where=str(error.filename or file),
            mend="Name a file that can be written with --summary.",
        ) from error


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
    request = urllib.request.Request(  # noqa: S310  # http or https, as was just seen
        url,
        data=json.dumps(document).encode(),
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S):  # noqa: S310  # as above
            pass
    except (urllib.error.URLError, OSError) as error:
        why = getattr(error, "reason", None) or error
        raise LaunchError(
            what=f"the summary could not be sent to {parts.hostname}: {why}.",
            where="--webhook",
            mend="Look whether the address is right and can be reached from here.",
        ) from None
