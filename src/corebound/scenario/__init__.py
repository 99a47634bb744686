"""A scenario: from YAML text to checked values, and from those to cells. Pure."""
