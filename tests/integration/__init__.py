"""Tests with real processes, frameworks, servers and repositories."""
