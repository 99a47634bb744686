"""Where this user's corebound keeps what it makes for itself, for every checkout and suite."""

from __future__ import annotations

import os
from pathlib import Path


def own_folder() -> Path:
    """COREBOUND_CACHE, else a folder of the user's cache folder; it may not be there yet."""
    chosen = os.environ.get("COREBOUND_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "corebound"
