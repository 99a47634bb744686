"""The load generator: a separate process that sends requests, launched like a worker."""
