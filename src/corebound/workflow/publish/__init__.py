"""A finished site, put where readers see it."""
