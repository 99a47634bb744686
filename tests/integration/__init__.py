"""Tests with real processes, frameworks and servers."""
