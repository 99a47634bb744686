"""Statistics without I/O: intervals, comparisons, warm-up, disturbances and change points."""
