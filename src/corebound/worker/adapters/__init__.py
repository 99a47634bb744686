"""Framework adapters, one module per framework: seed, thread counts, versions and profiler."""
