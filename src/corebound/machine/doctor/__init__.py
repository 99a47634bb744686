"""Checks of the host: read once, judged without effects, changed only if asked."""
