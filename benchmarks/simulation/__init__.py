"""Error rates of the statistics, by simulation: `python -m benchmarks.simulation`."""
