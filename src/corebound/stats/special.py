"""SciPy's special functions, imported when the first of them is asked for.

To import them takes a fifth of a second and 27 MiB, which most commands have no use for.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """A function of `scipy.special`; `scipy.stats` would take half a second to import."""
    return getattr(importlib.import_module("scipy.special"), name)
