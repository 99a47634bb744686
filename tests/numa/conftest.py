"""The suite runs inside the booted machine and is never collected here."""

from __future__ import annotations

# pytest imports modules to look for doctests.
collect_ignore = ["suite"]
