"""`corebound init`: creates the first files that a repository needs for nightly runs."""
