"""Check the host for settings and load that disturb measurements, and tune it on request."""
