"""The load generator: a process of its own, launched like a worker."""
