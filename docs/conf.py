"""Configuration of Sphinx: `make docs` builds the documentation from this folder, offline."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import write_reference  # noqa: E402 (found in the folder above)

from corebound import __version__  # noqa: E402

write_reference.write()

project = "corebound"
author = "the corebound developers"
copyright = "the corebound developers"  # noqa: A001 (the name is Sphinx's)
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
# GitHub draws these diagrams; here they stay text.
# Only docs/adr/README.md lists decision records; a test checks that the index has all other pages.
suppress_warnings = ["misc.highlighting_failure", "toc.not_included"]
exclude_patterns = ["_build", "reference/generated"]
copybutton_exclude = ".linenos, .gp, .go"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_numpy_docstring = False
html_theme = "furo"
html_title = "corebound"
html_theme_options = {"top_of_page_buttons": []}
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
