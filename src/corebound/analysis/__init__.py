"""Turns records and statistics into results. Pure: no HTML and no terminal output."""
