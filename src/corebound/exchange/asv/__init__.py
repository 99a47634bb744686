"""Import and export of asv's result trees."""
