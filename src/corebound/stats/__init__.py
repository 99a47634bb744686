"""Decisions from samples: what a launch, a cell and a pair of cells really say."""
