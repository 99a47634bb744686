"""What every test here has in common."""

from __future__ import annotations

from hypothesis import settings

# Unit tests know no real time: on a busy host one example may take a second.
settings.register_profile("corebound", deadline=None)
settings.load_profile("corebound")
