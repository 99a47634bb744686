"""How often the statistics are right, by simulation: `python -m benchmarks.simulation`."""
