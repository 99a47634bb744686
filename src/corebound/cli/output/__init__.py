"""Render the results of commands: text, Markdown, JSON, JUnit XML and progress."""
