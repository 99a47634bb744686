"""Append-only storage of runs, launches, histories and decisions."""
