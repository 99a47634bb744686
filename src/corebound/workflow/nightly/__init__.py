"""A nightly run: steps one after the other, each a process of its own, and their results."""
