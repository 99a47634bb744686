"""Records and statistics in, page models out: every figure chosen, every word written."""
