"""Corebound beside asv, pyperf and hyperfine, on real launches: `python -m benchmarks.peers`."""
