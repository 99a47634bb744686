"""The static site: `pages` builds models, `charts` SVG, `render` HTML, and `site` writes files."""
