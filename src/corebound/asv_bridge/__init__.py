"""Use asv as a library, in a separate process that builds commits of a project."""
