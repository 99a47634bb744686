"""Publish a finished site, to a folder or to a git branch."""
