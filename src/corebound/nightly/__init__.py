"""A night: steps one after the other, each a process of its own, and what they came to."""
