"""Change points of a history: where they are, how sure they are, which of them alarm."""
