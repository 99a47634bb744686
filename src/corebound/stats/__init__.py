"""Decisions from numbers: intervals, comparisons, change points. Pure."""
