"""The static site: pages make models, charts draw SVG, render makes HTML, site writes."""
