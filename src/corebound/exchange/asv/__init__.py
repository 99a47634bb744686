"""asv's result trees, in and out."""
