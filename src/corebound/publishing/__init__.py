"""A site, once it is whole, put where readers see it: a folder, or a branch of a repository."""
