"""asv as a library, in a process of its own that builds commits of a project."""
