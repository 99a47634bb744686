"""Draws SVG from numbers. Drawings contain no text except titles, which the HTML repeats."""
