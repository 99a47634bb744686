"""SciPy's special functions, imported on first use.

The import takes a fifth of a second and 27 MiB, and most commands do not need it.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """A function of `scipy.special`. Importing `scipy.stats` would take half a second."""
    return getattr(importlib.import_module("scipy.special"), name)
