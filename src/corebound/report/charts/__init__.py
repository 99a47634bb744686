"""Numbers in, SVG out: no text but titles, which HTML beside the drawing repeats.

Every drawing has a view box of 1000 by 1000 (or 1000 by 40 for one row) that is
stretched to its place, so only geometry is in it, with strokes that keep their
width. Labels are HTML, placed in per cent, so they keep their size on a phone.
"""
