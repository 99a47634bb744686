"""Nightly runs: a sequence of steps, each in its own process, with a journal and a summary."""
