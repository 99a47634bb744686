"""Numbers in, SVG out: no text but titles, which HTML beside the drawing repeats."""
